#include "app/cli/export_results.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "app/cli/terminal.h"
#include "app/results/written_results.h"
#include "common/whole_file.h"
#include "trace/reader.h"

namespace kvscope::cli {

namespace fs = std::filesystem;

const std::vector<std::string>& programs_with_result_files() {
    static const std::vector<std::string> names = {"kvpress", "lm-eval"};
    return names;
}

int export_results(const std::vector<fs::path>& traces, const std::string& program, const fs::path& folder,
                   bool force) {
    std::error_code error;
    if (fs::exists(folder, error) && !fs::is_directory(folder, error)) throw FileExists(folder);
    std::vector<results::ResultFile> files;
    std::set<fs::path> paths;
    for (const fs::path& path : traces) {
        const trace::Reader reader(path);
        const results::WrittenResults written = results::results_to_write(reader);
        if (written.n_failed > 0)
            print_to_stderr(
                fmt::format("kvscope: {}: omits the results of {} failed runs", path.string(), written.n_failed));
        for (results::ResultFile& file :
             program == "kvpress" ? results::files_of_kvpress(written) : results::files_of_lm_eval(written)) {
            if (!paths.insert(file.path).second)
                throw std::runtime_error(
                    fmt::format("{}: another trace has the same model, runs and task: export it into another folder",
                                path.string()));
            files.push_back(std::move(file));
        }
    }
    results::write_result_files(files, folder, force);
    std::set<fs::path> folders;
    for (const results::ResultFile& file : files) folders.insert(file.path.parent_path());
    print_to_stderr(fmt::format("kvscope: wrote {} files of {} into {} folders in {}", files.size(), program,
                                folders.size(), folder.string()));
    return 0;
}

}  // namespace kvscope::cli
