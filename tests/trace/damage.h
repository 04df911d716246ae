// Changes a trace's file, for tests of damaged traces.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "tests/trace/whole_records.h"
#include "trace/checks/check_trace.h"
#include "trace/hdf5/hdf5.h"
#include "trace/reader.h"

namespace kvscope::trace::damage {

namespace fs = std::filesystem;

[[nodiscard]] inline std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline void edit(const fs::path& path, const std::function<void(hid_t)>& change) {
    const h5::Guard guard;
    h5::Handle file(h5::checked(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open for a test"), H5Fclose);
    change(file.get());
}

inline void remove(hid_t file, const std::string& path) {
    h5::checked(H5Ldelete(file, path.c_str(), H5P_DEFAULT), "delete for a test");
}

template <class T>
void replace(hid_t file, const std::string& path, const std::vector<T>& values, const std::vector<std::size_t>& shape) {
    remove(file, path);
    h5::write_data_set<T>(file, path, std::span<const T>(values), shape);
}

template <class T>
void set_attribute(hid_t file, const std::string& group, const std::string& name, const T& value) {
    h5::write_attribute(h5::open_group(file, group).get(), name, value);
}

/// Reads everything that is readable.
inline void read_all(const fs::path& path) {
    const Reader reader(path);
    (void)model_record(reader);
    for (int i = 0; i < reader.n_prompts(); ++i) {
        (void)prompt_record(reader, i);
        for (int j = 0; j < reader.n_runs(i); ++j) {
            (void)reader.run_record(i, j);
            if (reader.run(i, j).status == "complete") (void)reader.kept(i, j);
        }
    }
    for (const auto& task : reader.result_tasks()) (void)reader.results(task);
}

[[nodiscard]] inline std::string message_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

[[nodiscard]] inline bool reports(const fs::path& path, const std::string& at) {
    for (const Problem& problem : find_problems(path)) {
        if (problem.severity == Problem::Severity::error && problem.path == at) return true;
    }
    return false;
}

}  // namespace kvscope::trace::damage
