#include "tests/fuzz/read_trace.h"

#include "tests/fuzz/reader.h"
#include "tests/trace/whole_records.h"
#include "trace/checks/check_trace.h"
#include "trace/read_block.h"
#include "trace/reader.h"
#include "trace/tree.h"

namespace kvscope::fuzz {

void read_trace(const std::filesystem::path& path) {
    may_refuse([&] { trace::find_problems(path); });
    may_refuse([&] { trace::tree(path); });
    may_refuse([&] {
        const trace::Reader reader(path);
        if (reader.has_model()) may_refuse([&] { static_cast<void>(trace::model_record(reader)); });
        for (int prompt = 0; prompt < reader.n_prompts(); ++prompt) {
            may_refuse([&] { static_cast<void>(trace::prompt_record(reader, prompt)); });
            for (int run = 0; run < reader.n_runs(prompt); ++run) {
                may_refuse([&] { static_cast<void>(reader.run_record(prompt, run)); });
                may_refuse([&] { static_cast<void>(reader.kept(prompt, run)); });
            }
        }
        for (const auto& task : reader.result_tasks()) may_refuse([&] { static_cast<void>(reader.results(task)); });
    });
}

}  // namespace kvscope::fuzz
