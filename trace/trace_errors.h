// What can go wrong with a trace, one type for each thing that a caller may want to tell apart.
// All are std::runtime_error: failures, not wrong usage. Messages name the file, what was expected,
// what was found and, where something can be done, what to do.
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
/// The system does not let the file be read now: too many open files, no permission, a failing disk … Nothing is known
/// of its contents, which may be sound.
struct ReadFailed : TraceError {
    using TraceError::TraceError;
};
/// The file ends before its contents do.
struct TruncatedTrace : TraceError {
    using TraceError::TraceError;
};
/// A major version that this build does not read.
struct TraceTooNew : TraceError {
    using TraceError::TraceError;
};
/// Contents that break the format: something missing, of another type or shape, or unreadable.
struct DamagedTrace : TraceError {
    using TraceError::TraceError;
};

/// Something else is at the output already.
struct OutputExists : TraceError {
    using TraceError::TraceError;
};
/// Something else that `force` replaces.
struct ReplaceableOutputExists : OutputExists {
    using OutputExists::OutputExists;
};
/// The output is a complete trace of the very same recipe: there is nothing to do.
struct AlreadyComplete : TraceError {
    using TraceError::TraceError;
};
/// Another process is writing this output.
struct OutputBusy : TraceError {
    using TraceError::TraceError;
};
/// The disk is full, the folder is not writable, … What was finished before stays.
struct WriteFailed : TraceError {
    using TraceError::TraceError;
};

}  // namespace kvscope::trace
