# Runs `fast_tsne` as wrappers written in R do: asks it for its version, writes FIt-SNE's file field by
# field, runs it, reads the result. Arguments: the data as csv, the generation of the wrapper, the result.
#
# Wrappers of two generations are about. Seurat 3.0 and its copies accept a program that says
# "= t-SNE v1.1" somewhere and write version 1.1.0; later ones write whichever version stands first.

arguments <- commandArgs(trailingOnly = TRUE)
X <- as.matrix(read.csv(arguments[1], header = FALSE))
program <- normalizePath(Sys.which("fast_tsne"))
stopifnot(utils::file_test("-x", program))

greeting <- suppressWarnings(system2(program, stdout = TRUE))[1]
if (arguments[2] == "early") {
  stopifnot(grepl("= t-SNE v1.1", greeting))
  version <- "1.1.0"
} else {
  version <- sub("= t-SNE v", "", regmatches(greeting, regexpr("= t-SNE v[0-9.]+", greeting)))
}

input <- tempfile(fileext = ".dat")
output <- tempfile(fileext = ".dat")
file <- file(input, "wb")
int <- function(...) for (value in c(...)) writeBin(as.integer(value), file, size = 4)
real <- function(...) for (value in c(...)) writeBin(as.numeric(value), file, size = 8)
perplexity <- 30
int(dim(X))
real(0.5, perplexity)            # theta
int(2, 500, 250, 250)            # dimensions, iterations, end of exaggeration, switch of momentum
real(0.5, 0.8, 200)              # momenta, learning rate
if (version != "1.1.0") real(5)  # longest step
int(-1)                          # K
real(-30)                        # sigma
int(2, 1)                        # grid, Annoy
real(12)                         # exaggeration
int(0, 50, 50 * perplexity * 3)  # momentum during exaggeration, trees, search_k
int(-1)                          # start of late exaggeration
real(1)
int(3)                           # nterms
real(1)
int(50)
writeBin(c(t(X)), file)
int(42)                          # seed
real(1)                          # degrees of freedom
int(0)                           # affinities are computed
close(file)

status <- system2(program, c(version, input, output, 2))
stopifnot(status == 0)

file <- file(output, "rb")
shape <- readBin(file, integer(), n = 2, size = 4)
Y <- t(matrix(readBin(file, numeric(), n = prod(shape)), nrow = shape[2]))
iterations <- readBin(file, integer(), n = 1, size = 4)
costs <- readBin(file, numeric(), n = iterations, size = 8)
write.table(Y, arguments[3], sep = ",", row.names = FALSE, col.names = FALSE)
cat(sprintf("%s %.17g\n", version, costs[iterations]))
