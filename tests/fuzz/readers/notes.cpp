// The file beside a trace with pins, notes and how it was looked at.
#include "app/gui/session/annotations.h"
#include "app/gui/session/document.h"
#include "app/gui/session/session_state.h"
#include "common/json.h"
#include "tests/fuzz/reader.h"
#include "tests/trace/sample_trace.h"

namespace kvscope::fuzz {

Reader notes_reader() {
    return {"notes", [](std::string_view bytes) {
                static const auto path = [] {
                    auto made = scratch() / "noted.h5";
                    trace::sample::write(made);
                    return made;
                }();
                scratch_file(gui::annotations_path(path).filename().string(), bytes);
                may_refuse([&] {
                    gui::Document document(0, path);
                    gui::load_annotations(document);
                    gui::Tasks tasks([] {}, 0);
                    gui::Session session(tasks);
                    const nlohmann::json view = gui::load_trace_display(path);
                    session.open(path);
                    gui::restore_trace_display(session, *session.documents().front(), view);
                    gui::save_annotations(document, view);
                });
            }};
}

}  // namespace kvscope::fuzz
