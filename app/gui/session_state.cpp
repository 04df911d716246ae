#include "app/gui/session_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "analysis/run_style.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Documents by their place in the list: ids are of one session alone.
int place_of(const Session& session, int id) {
    int place = 0;
    for (const auto& document : session.documents()) {
        if (document->id() == id) return place;
        ++place;
    }
    return -1;
}

json json_of(const Session& session, const RunKey& key) {
    return {place_of(session, key.document), key.prompt, key.run};
}

}  // namespace

json session_state(const Session& session, const std::vector<fs::path>& paths) {
    json traces = json::array();
    for (size_t i = 0; i < session.documents().size(); ++i) {
        const Document& document = *session.documents()[i];
        json hidden = json::array();
        for (const RunKey& key : document.hidden) hidden.push_back({key.prompt, key.run});
        traces.push_back({{"path", paths[i].string()}, {"prompt", document.prompt}, {"hidden", hidden}});
    }
    const Cursor& cursor = session.cursor();
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
    if (session.a) state["a"] = json_of(session, *session.a);
    if (session.b) state["b"] = json_of(session, *session.b);
    return state;
}

std::vector<std::string> restore_session(Session& session, const json& state, const fs::path& folder) {
    std::vector<std::string> problems;
    std::vector<int> ids;  // of each trace in the state, −1 where it did not open
    for (const json& trace : state.value("traces", json::array())) {
        ids.push_back(-1);
        try {
            Document& document = session.open(folder / trace.at("path").get<std::string>());
            ids.back() = document.id();
            document.prompt = std::clamp(trace.value("prompt", 0), 0, std::max(document.reader()->n_prompts() - 1, 0));
            document.hidden.clear();
            document.runs_were_chosen = true;
            for (const json& run : trace.value("hidden", json::array()))
                document.hidden.insert({document.id(), run.at(0).get<int>(), run.at(1).get<int>()});
        } catch (const std::exception& error) {
            problems.emplace_back(error.what());
        }
    }
    const auto key_of = [&](const json& key) {
        const auto place = key.at(0).get<size_t>();
        return RunKey{place < ids.size() ? ids[place] : -1, key.at(1).get<int>(), key.at(2).get<int>()};
    };
    try {
        session.mark = state.value("mark", std::string());
        const json axis = state.value("token_axis", json::array({0, 0}));
        session.token_axis = {axis.at(0).get<double>(), axis.at(1).get<double>()};
        for (auto* slot : {&session.a, &session.b}) {
            const char* name = slot == &session.a ? "a" : "b";
            if (state.contains(name) && session.exists(key_of(state[name]))) *slot = key_of(state[name]);
        }
        const json& selected = state.at("selection");
        const RunKey run = key_of(selected.at("run"));
        if (session.exists(run)) {
            session.selection.set({run, selected.value("layer", -1), selected.value("kv_head", -1),
                                   selected.value("query_head", -1), selected.at("tokens").at(0).get<int64_t>(),
                                   selected.at("tokens").at(1).get<int64_t>(), selected.value("step", -1)});
        }
    } catch (const json::exception& error) {
        problems.push_back(fmt::format("the saved selection cannot be understood and is left out: {}", error.what()));
    }
    return problems;
}

json view_state(const Session& session, const Document& document) {
    const trace::Reader& reader = *document.reader();
    const auto named = [&](const RunKey& key) -> json {
        const bool is_own = key.document == document.id() && session.exists(key);
        if (!is_own || !reader.is_in_file(key.prompt, key.run)) return nullptr;
        return {key.prompt, key.run, analysis::run_label(reader.run(key.prompt, key.run))};
    };
    json hidden = json::array();
    for (const RunKey& key : document.hidden) {
        if (json run = named(key); !run.is_null()) hidden.push_back(std::move(run));
    }
    json state = {{"prompt", document.prompt}, {"hidden", hidden}, {"mark", session.mark}};
    if (session.a) state["a"] = named(*session.a);
    if (session.b) state["b"] = named(*session.b);
    const Cursor& cursor = session.cursor();
    if (json run = named(cursor.run); !run.is_null())
        state["selection"] = {{"run", run},
                              {"layer", cursor.layer},
                              {"kv_head", cursor.kv_head},
                              {"query_head", cursor.query_head},
                              {"tokens", {cursor.first_token, cursor.last_token}},
                              {"step", cursor.step}};
    return state;
}

void restore_view(Session& session, Document& document, const json& state) {
    if (!state.is_object()) return;
    const trace::Reader& reader = *document.reader();
    const auto found = [&](const json& run) {
        if (!run.is_array()) return RunKey{};
        const RunKey key{document.id(), run.at(0).get<int>(), run.at(1).get<int>()};
        const bool is_same = session.exists(key) && analysis::run_label(reader.run(key.prompt, key.run)) == run.at(2);
        return is_same ? key : RunKey{};
    };
    try {
        std::set<RunKey> hidden;
        for (const json& run : state.value("hidden", json::array())) {
            if (found(run).valid()) hidden.insert(found(run));
        }
        document.prompt = std::clamp(state.value("prompt", 0), 0, std::max(reader.n_prompts() - 1, 0));
        document.hidden = std::move(hidden);
        document.runs_were_chosen = true;
        for (auto* slot : {&session.a, &session.b}) {
            const RunKey run = found(state.value(slot == &session.a ? "a" : "b", json()));
            if (!*slot && run.valid()) *slot = run;
        }
        if (session.documents().size() > 1) return;
        if (session.mark.empty()) session.mark = state.value("mark", std::string());
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
        return;  // what cannot be understood stays as it opens
    }
}

json load_view(const fs::path& trace) {
    std::ifstream file(annotations_path(trace));
    const json read = json::parse(file, nullptr, false);
    return read.is_object() ? read.value("view", json()) : json();
}

fs::path annotations_path(const fs::path& trace) { return trace.string() + ".notes.json"; }

void save_annotations(const Document& document, const json& view) {
    json pins = json::object();
    for (const auto& [prompt, tokens] : document.pins) {
        if (!tokens.empty()) pins[std::to_string(prompt)] = tokens;
    }
    json notes = json::array();
    for (const Note& note : document.notes)
        notes.push_back(
            {{"prompt", note.prompt}, {"tokens", {note.first_token, note.last_token}}, {"text", note.text}});
    json answers = json::array();
    for (const FurtherAnswer& answer : document.further_answers()) {
        if (!answer.finished || !answer.error.empty()) continue;
        answers.push_back({{"prompt", answer.prompt},
                           {"run", answer.run},
                           {"run_number", answer.run_number},
                           {"question", answer.question},
                           {"answer", answer.text}});
        if (!answer.remark.empty()) answers.back()["remark"] = answer.remark;
    }
    json what_ifs = json::array();
    for (const KeptWhatIf& what_if : document.kept_what_ifs()) {
        what_ifs.push_back({{"prompt", what_if.prompt},
                            {"run", what_if.run},
                            {"run_number", what_if.run_number},
                            {"parameters", json::parse(what_if.parameters_json, nullptr, false)},
                            {"budget", what_if.budget}});
    }
    const fs::path path = annotations_path(document.path());
    std::error_code error;
    if (pins.empty() && notes.empty() && answers.empty() && what_ifs.empty() && view.is_null()) {
        fs::remove(path, error);
        return;
    }
    const fs::path beside = path.string() + ".new";
    std::ofstream file(beside);
    json whole = {{"kvscope_notes", 1}, {"pins", pins}, {"notes", notes}};
    if (!answers.empty()) whole["further_answers"] = answers;
    if (!what_ifs.empty()) whole["what_ifs"] = what_ifs;
    if (!view.is_null()) whole["view"] = view;
    // A mark may be half a character.
    file << whole.dump(1, ' ', false, json::error_handler_t::replace) << '\n';
    file.close();
    if (file) fs::rename(beside, path, error);
    if (!file || error) {
        throw std::runtime_error(fmt::format(
            "{} cannot be written: pins, notes, further answers and kept what-ifs of {} last until the window closes",
            path.string(), document.name()));
    }
}

void load_annotations(Document& document) {
    std::ifstream file(annotations_path(document.path()));
    const json read = json::parse(file, nullptr, false);
    if (!read.is_object()) return;
    try {
        std::map<int, std::set<int64_t>> pins;
        const json saved_pins = read.value("pins", json::object());
        for (const auto& [prompt, tokens] : saved_pins.items())
            pins[std::stoi(prompt)] = tokens.get<std::set<int64_t>>();
        std::vector<Note> notes;
        for (const json& note : read.value("notes", json::array())) {
            notes.push_back({note.value("prompt", 0), note.at("tokens").at(0).get<int64_t>(),
                             note.at("tokens").at(1).get<int64_t>(), note.value("text", std::string())});
        }
        std::vector<FurtherAnswer> answers;
        for (const json& answer : read.value("further_answers", json::array())) {
            answers.push_back({-1,
                               answer.value("prompt", 0),
                               answer.value("run_number", -1),
                               answer.value("run", std::string()),
                               answer.value("question", std::string()),
                               answer.value("answer", std::string()),
                               answer.value("remark", std::string()),
                               true,
                               {}});
        }
        std::vector<KeptWhatIf> what_ifs;
        for (const json& what_if : read.value("what_ifs", json::array())) {
            what_ifs.push_back({what_if.value("prompt", 0), what_if.value("run_number", -1),
                                what_if.value("run", std::string()), what_if.value("parameters", json::object()).dump(),
                                what_if.value("budget", int64_t{0})});
        }
        document.pins = std::move(pins);
        document.notes = std::move(notes);
        document.saved_what_ifs = std::move(what_ifs);
        document.set_further_answers(std::move(answers));
    } catch (const std::exception&) {
        return;
    }
}

}  // namespace kvscope::gui
