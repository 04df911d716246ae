// Error types of failures that callers may handle differently. Messages name the file and, where possible, what to do.
#pragma once

#include <stdexcept>

namespace kvscope::trace {

struct TraceError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The file is missing, is not HDF5, or is HDF5 of another format.
struct NotATrace : TraceError {
    using TraceError::TraceError;
};
/// The file cannot be read now (no permission, too many open files …), but the contents may be sound.
struct ReadFailed : TraceError {
    using TraceError::TraceError;
};
/// The file is shorter than its contents require.
struct TruncatedTrace : TraceError {
    using TraceError::TraceError;
};
/// This build does not support the trace's major version.
struct TraceTooNew : TraceError {
    using TraceError::TraceError;
};
/// The contents break the format: an item is missing, unreadable, or of another type or shape.
struct DamagedTrace : TraceError {
    using TraceError::TraceError;
};

/// Another file or folder exists at the output path.
struct OutputExists : TraceError {
    using TraceError::TraceError;
};
/// A file or folder that `force` replaces exists at the output path.
struct ReplaceableOutputExists : OutputExists {
    using OutputExists::OutputExists;
};
/// The output is a complete trace of the same recipe, so there is nothing to do.
struct AlreadyComplete : TraceError {
    using TraceError::TraceError;
};
struct OutputBusy : TraceError {
    using TraceError::TraceError;
};
/// Writing failed (full disk, read-only folder …). Parts that were finished before remain.
struct WriteFailed : TraceError {
    using TraceError::TraceError;
};

}  // namespace kvscope::trace
