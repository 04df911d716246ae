#include "trace/creation_time.h"

#include "trace/group_locations.h"
#include "trace/hdf5/hdf5.h"
#include "trace/part_folder.h"
#include "trace/records/trace_errors.h"

namespace kvscope::trace {

std::optional<std::time_t> time_of_utc(const std::string& text) {
    std::tm time{};
    const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
    return end ? std::optional(timegm(&time)) : std::nullopt;
}

std::optional<std::time_t> creation_time(const std::filesystem::path& output) {
    std::error_code error;
    try {
        const std::filesystem::path folder = part_folder_of(output);
        if (std::filesystem::is_directory(folder, error))
            if (const auto record = read_folder_record(folder)) return time_of_utc(record->created_utc);
        if (!std::filesystem::is_regular_file(output, error)) return std::nullopt;
        const h5::Guard guard;
        return time_of_utc(Source(output).root.created_utc);
    } catch (const TraceError&) {
        return std::nullopt;  // the writer reports the error
    }
}

}  // namespace kvscope::trace
