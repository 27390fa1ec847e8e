# t-SNE by acctsne from R, through files: neither reticulate nor a package is needed, only the program
# `acctsne` on the path.
#
#   source("acctsne.R")
#   Y <- acctsne(as.matrix(iris[, 1:4]), perplexity = 20, seed = 1)
#   plot(Y, col = iris$Species, pch = 19, asp = 1)
#
# With Seurat:
#
#   object[["tsne"]] <- CreateDimReducObject(
#     acctsne(Embeddings(object, "pca")[, 1:30]), key = "tSNE_", assay = DefaultAssay(object))

# X: a numeric matrix, samples in rows.
# ...: parameters of acctsne, as `acctsne embed --help` lists them; max_iter = 500 is --max-iter 500.
# Returns a matrix with a row for each sample; its attribute "kl" is the KL divergence.
acctsne <- function(X, ..., program = Sys.which("acctsne")) {
  if (!is.matrix(X) || !is.numeric(X)) stop("X must be a numeric matrix; as.matrix() makes one")
  if (program == "") stop("the program acctsne is not on the path; give program = \"/path/to/it\"")
  data <- tempfile(fileext = ".npy")
  map <- tempfile(fileext = ".npy")
  said <- tempfile()
  on.exit(unlink(c(data, map, said)))
  write_npy(X, data)
  given <- list(...)
  if (length(given) && (is.null(names(given)) || any(names(given) == "")))
    stop("parameters of acctsne need names, such as perplexity = 50")
  flags <- sprintf("--%s", gsub("[._]", "-", names(given)))
  options <- as.vector(rbind(flags, vapply(given, function(value) shQuote(format(value, digits = 15)), "")))
  arguments <- c("embed", shQuote(data), "-o", shQuote(map), "--quiet", "--json", options)
  summary <- suppressWarnings(system2(program, arguments, stdout = TRUE, stderr = said))
  if (!is.null(attr(summary, "status"))) stop(paste(readLines(said), collapse = "\n"))
  Y <- read_npy(map)
  dimnames(Y) <- list(rownames(X), paste0("tSNE_", seq_len(ncol(Y))))
  kl <- regmatches(summary[1], regexpr('"kl_divergence": [0-9.e+-]+', summary[1]))
  attr(Y, "kl") <- as.numeric(sub(".* ", "", kl))
  Y
}

# NumPy's format, version 1: a header padded to 64 bytes, then the numbers; R's are column by column.
write_npy <- function(X, path) {
  shape <- sprintf("{'descr': '<f8', 'fortran_order': True, 'shape': (%d, %d), }", nrow(X), ncol(X))
  header <- paste0(shape, strrep(" ", (53 - nchar(shape)) %% 64), "\n")
  file <- file(path, "wb")
  on.exit(close(file))
  writeBin(as.raw(c(0x93, utf8ToInt("NUMPY"), 1, 0)), file)
  writeBin(nchar(header), file, size = 2, endian = "little")
  writeChar(header, file, eos = NULL)
  writeBin(as.numeric(X), file, size = 8, endian = "little")
}

read_npy <- function(path) {
  file <- file(path, "rb")
  on.exit(close(file))
  readBin(file, "raw", 8)
  header <- readChar(file, readBin(file, "integer", 1, size = 2, signed = FALSE, endian = "little"))
  shape <- as.integer(strsplit(sub(".*'shape': \\(([0-9]+), ([0-9]+)\\).*", "\\1 \\2", header), " ")[[1]])
  size <- as.integer(sub(".*'descr': '<f([48])'.*", "\\1", header))
  values <- readBin(file, "numeric", prod(shape), size = size, endian = "little")
  matrix(values, shape[1], shape[2], byrow = !grepl("'fortran_order': True", header))
}
