#include "app/gui/session/session_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/runs/run_style.h"
#include "app/gui/session/stored_json.h"
#include "common/json.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

int place_of(const Session& session, int id) {
    int place = 0;
    for (const auto& document : session.documents()) {
        if (document->id() == id) return place;
        ++place;
    }
    return -1;
}

int place_in_file(const Session& session, const RunKey& key) {
    if (!session.exists(key)) return -1;
    const RunAt at = session.at(key);
    return at.reader->is_in_file(at.prompt, at.run) ? at.run : -1;
}

json json_of(const Session& session, const RunKey& key) {
    return {place_of(session, key.document), key.prompt, place_in_file(session, key)};
}

RunKey key_at(const Document& document, int prompt, int run) {
    const bool is_there = run >= 0 && static_cast<size_t>(run) < document.runs(prompt).size();
    return is_there ? document.key_of(prompt, run) : RunKey{};
}

}  // namespace

json session_state(const Session& session, const std::vector<fs::path>& paths) {
    json traces = json::array();
    for (size_t i = 0; i < session.documents().size(); ++i) {
        const Document& document = *session.documents()[i];
        json hidden = json::array();
        for (const RunKey& key : document.hidden) {
            if (const int run = place_in_file(session, key); run >= 0) hidden.push_back({key.prompt, run});
        }
        traces.push_back(
            {{"path", paths[i].string()}, {"badge", document.id()}, {"prompt", document.prompt}, {"hidden", hidden}});
    }
    const Cursor cursor = session.cursor();
    json state = {
        {"traces", traces},
        {"mark", session.mark},
        {"token_axis", {session.token_axis.min, session.token_axis.max}},
        {"selection",
         {{"run", json_of(session, cursor.run)},
          {"layer", cursor.layer},
          {"kv_head", cursor.kv_head},
          {"query_head", cursor.query_head},
          {"tokens", {cursor.first_token, cursor.last_token}},
          {"step", cursor.step}}},
    };
    if (session.pair.a) state["a"] = json_of(session, *session.pair.a);
    if (session.pair.b) state["b"] = json_of(session, *session.pair.b);
    if (session.pair.alone) state["pair_alone"] = true;
    return state;
}

json with_fields_of_later_versions(json state, const json& before) {
    state.update(unknown_members_of(before, {"traces", "mark", "token_axis", "selection", "a", "b", "pair_alone"}));
    if (!before.is_object()) return state;
    state["selection"].update(unknown_members_of(before.value("selection", json()),
                                                 {"run", "layer", "kv_head", "query_head", "tokens", "step"}));
    const json traces_before = before.value("traces", json::array());
    for (json& trace : state["traces"]) {
        for (const json& other : traces_before) {
            if (other.is_object() && other.contains("path") && other["path"] == trace["path"])
                trace.update(unknown_members_of(other, {"path", "badge", "prompt", "hidden"}));
        }
    }
    return state;
}

std::vector<std::string> restore_session(Session& session, const json& state, const fs::path& folder) {
    if (!state.is_object()) return {"the list of open traces is invalid"};
    std::vector<std::string> problems;
    std::vector<int> ids;  // one per trace in the state; −1 if it did not open
    const auto saved = state.find("traces");
    const json traces = saved != state.end() && saved->is_array() ? *saved : json::array();
    if (saved != state.end() && !saved->is_array()) problems.emplace_back("the list of open traces is invalid");
    for (const json& trace : traces) {
        ids.push_back(-1);
        try {
            Document& document =
                session.open(folder / trace.at("path").get<std::string>(), false, trace.value("badge", 0));
            ids.back() = document.id();
            document.prompt = std::clamp(trace.value("prompt", 0), 0, std::max(document.reader()->n_prompts() - 1, 0));
            document.hidden.clear();
            document.runs_were_chosen = true;
            for (const json& run : trace.value("hidden", json::array())) {
                const RunKey key = key_at(document, run.at(0).get<int>(), run.at(1).get<int>());
                if (key.valid()) document.hidden.insert(key);
            }
        } catch (const std::exception& error) {
            problems.emplace_back(error.what());
        }
    }
    const auto key_of = [&](const json& key) {
        const auto place = key.at(0).get<size_t>();
        const Document* document = place < ids.size() ? session.document(ids[place]) : nullptr;
        return document ? key_at(*document, key.at(1).get<int>(), key.at(2).get<int>()) : RunKey{};
    };
    try {
        session.mark = state.value("mark", std::string());
        const json axis = state.value("token_axis", json::array({0, 0}));
        session.token_axis = {axis.at(0).get<double>(), axis.at(1).get<double>()};
        for (auto* slot : {&session.pair.a, &session.pair.b}) {
            const char* name = slot == &session.pair.a ? "a" : "b";
            if (state.contains(name) && session.exists(key_of(state[name]))) *slot = key_of(state[name]);
        }
        session.pair.alone = state.value("pair_alone", false);
        const json& selected = state.at("selection");
        const RunKey run = key_of(selected.at("run"));
        if (session.exists(run)) {
            session.selection.set({run, selected.value("layer", -1), selected.value("kv_head", -1),
                                   selected.value("query_head", -1), selected.at("tokens").at(0).get<int64_t>(),
                                   selected.at("tokens").at(1).get<int64_t>(), selected.value("step", -1)});
        }
    } catch (const json::exception&) {
        problems.emplace_back("the saved selection is invalid and was ignored");
    }
    return problems;
}

json trace_display_state(const Session& session, const Document& document) {
    const trace::Reader& reader = *document.reader();
    const auto named = [&](const RunKey& key) -> json {
        const int run = key.document == document.id() ? place_in_file(session, key) : -1;
        if (run < 0) return nullptr;
        return {key.prompt, run, analysis::recorded_or_default_label(reader.run(key.prompt, run))};
    };
    json hidden = json::array();
    for (const RunKey& key : document.hidden)
        if (json run = named(key); !run.is_null()) hidden.push_back(std::move(run));
    const std::string mark = document.has_text(session.mark) ? session.mark : "";
    json state = {{"prompt", document.prompt}, {"hidden", hidden}, {"mark", mark}};
    if (session.pair.a) state["a"] = named(*session.pair.a);
    if (session.pair.b) state["b"] = named(*session.pair.b);
    if (session.pair.alone) state["pair_alone"] = true;
    const Cursor cursor = session.cursor();
    if (json run = named(cursor.run); !run.is_null())
        state["selection"] = {{"run", run},
                              {"layer", cursor.layer},
                              {"kv_head", cursor.kv_head},
                              {"query_head", cursor.query_head},
                              {"tokens", {cursor.first_token, cursor.last_token}},
                              {"step", cursor.step}};
    return state;
}

void restore_trace_display(Session& session, Document& document, const json& state) {
    if (!state.is_object()) return;
    const trace::Reader& reader = *document.reader();
    const auto found = [&](const json& run) {
        if (!run.is_array()) return RunKey{};
        const RunKey key = key_at(document, run.at(0).get<int>(), run.at(1).get<int>());
        return key.valid() && analysis::recorded_or_default_label(session.attributes(key)) == run.at(2) ? key
                                                                                                        : RunKey{};
    };
    try {
        std::set<RunKey> hidden;
        for (const json& run : state.value("hidden", json::array()))
            if (found(run).valid()) hidden.insert(found(run));
        document.prompt = std::clamp(state.value("prompt", 0), 0, std::max(reader.n_prompts() - 1, 0));
        document.hidden = std::move(hidden);
        document.runs_were_chosen = true;
        const bool had_pair = session.pair.a || session.pair.b;
        for (auto* slot : {&session.pair.a, &session.pair.b}) {
            const RunKey run = found(state.value(slot == &session.pair.a ? "a" : "b", json()));
            if (!*slot && run.valid()) *slot = run;
        }
        if (!had_pair && session.pair.is_complete()) session.pair.alone = state.value("pair_alone", session.pair.alone);
        if (session.documents().size() > 1) return;
        const std::string mark = state.value("mark", std::string());
        if (session.mark.empty() && document.has_text(mark)) session.mark = mark;
        const json selected = state.value("selection", json::object());
        const RunKey run = found(selected.value("run", json()));
        if (!run.valid() || !reader.has_model()) return;
        const auto within = [](int value, int64_t n) { return value < n ? value : -1; };
        const trace::ModelAttributes& model = reader.model();
        Cursor cursor{run,
                      within(selected.value("layer", -1), model.n_layers),
                      within(selected.value("kv_head", -1), model.n_kv_heads),
                      within(selected.value("query_head", -1), model.n_heads),
                      selected.at("tokens").at(0).get<int64_t>(),
                      selected.at("tokens").at(1).get<int64_t>(),
                      selected.value("step", -1)};
        if (cursor.last_token >= reader.prompt(run.prompt).visible_tokens())
            cursor.first_token = cursor.last_token = -1;
        session.selection.set(cursor);
    } catch (const json::exception&) {
        return;  // keep the defaults if the state is invalid
    }
}

}  // namespace kvscope::gui
