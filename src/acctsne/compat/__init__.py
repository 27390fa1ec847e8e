"""What acctsne takes from scikit-learn beyond its public interface, in one place."""
