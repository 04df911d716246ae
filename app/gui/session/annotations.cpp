#include "app/gui/session/annotations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "app/gui/session/stored_json.h"
#include "common/bounded_json.h"
#include "trace/part_folder.h"

namespace kvscope::gui {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* notes_key = "kvscope_notes";
constexpr int notes_version = 1;
constexpr std::initializer_list<const char*> annotation_lists = {"notes", "further_answers", "what_ifs", "labels"};

fs::path usual_path(const fs::path& trace) { return trace.string() + ".notes.json"; }
fs::path path_beside_later(const fs::path& trace) {
    return fmt::format("{}.notes.v{}.json", trace.string(), notes_version);
}

int64_t saved_integer(const json& value) {
    if (!value.is_number_integer()) throw std::invalid_argument("no integer");
    return value.get<int64_t>();
}

int64_t saved_integer(const json& object, const char* key, int64_t otherwise) {
    return object.contains(key) ? saved_integer(object.at(key)) : otherwise;
}

std::string saved_text(const json& object, const char* key) { return object.value(key, std::string()); }

std::string unknown_text(const json& object, std::initializer_list<const char*> known) {
    const json rest = unknown_members_of(object, known);
    return rest.empty() ? std::string() : rest.dump();
}

struct Annotations {
    std::map<int, std::set<int64_t>> pins;
    std::vector<Note> notes;
    std::vector<FurtherAnswer> answers;
    std::vector<KeptWhatIf> what_ifs;
    std::vector<GivenLabel> labels;
    std::vector<std::string> not_understood;  ///< invalid values, e.g. "notes[2]"
};

/// Calls `add` for each member of the value at `key`. `add` throws if the member is invalid.
template <class Add>
void each_member(const json& contents, const char* key, bool is_list, Annotations& into, Add add) {
    if (!contents.contains(key)) return;
    const json& all = contents[key];
    if (is_list ? !all.is_array() : !all.is_object()) {
        into.not_understood.emplace_back(key);
        return;
    }
    for (const auto& [name, value] : all.items()) {
        try {
            add(name, value);
        } catch (const std::exception&) {
            into.not_understood.push_back(fmt::format("{}[{}]", key, name));
        }
    }
}

Annotations annotations_in(const json& contents) {
    Annotations found;
    each_member(contents, "pins", false, found, [&](const std::string& name, const json& tokens) {
        int prompt = 0;
        const char* const end = name.data() + name.size();
        if (const auto read = std::from_chars(name.data(), end, prompt); read.ec != std::errc() || read.ptr != end)
            throw std::invalid_argument("no prompt");
        if (!tokens.is_array()) throw std::invalid_argument("no list");
        std::set<int64_t> pins;
        for (const json& token : tokens) pins.insert(saved_integer(token));
        found.pins[prompt] = std::move(pins);
    });
    each_member(contents, "notes", true, found, [&](const std::string&, const json& note) {
        const json& tokens = note.at("tokens");
        found.notes.push_back({static_cast<int>(saved_integer(note, "prompt", 0)), saved_integer(tokens.at(0)),
                               saved_integer(tokens.at(1)), saved_text(note, "text"),
                               unknown_text(note, {"prompt", "tokens", "text"})});
    });
    each_member(contents, "further_answers", true, found, [&](const std::string&, const json& saved) {
        FurtherAnswer answer;
        answer.prompt = static_cast<int>(saved_integer(saved, "prompt", 0));
        answer.run_number = static_cast<int>(saved_integer(saved, "run_number", -1));
        answer.run = saved_text(saved, "run");
        answer.question = saved_text(saved, "question");
        answer.text = saved_text(saved, "answer");
        answer.remark = saved_text(saved, "remark");
        answer.finished = true;
        answer.unknown_json = unknown_text(saved, {"prompt", "run", "run_number", "question", "answer", "remark"});
        found.answers.push_back(std::move(answer));
    });
    each_member(contents, "what_ifs", true, found, [&](const std::string&, const json& saved) {
        const json parameters = saved.value("parameters", json::object());
        if (!parameters.is_object()) throw std::invalid_argument("no parameters");
        const json answer = saved.value("answer", json());
        if (!answer.is_null() && !answer.is_object()) throw std::invalid_argument("no answer");
        found.what_ifs.push_back(
            {static_cast<int>(saved_integer(saved, "prompt", 0)),
             static_cast<int>(saved_integer(saved, "run_number", -1)), saved_text(saved, "run"), parameters.dump(),
             saved_integer(saved, "budget", 0), false,
             unknown_text(saved, {"prompt", "run", "run_number", "parameters", "budget", "answer"}),
             answer.is_null() ? "" : answer.dump()});
    });
    each_member(contents, "labels", true, found, [&](const std::string&, const json& saved) {
        found.labels.push_back({static_cast<int>(saved_integer(saved, "prompt", 0)),
                                static_cast<int>(saved_integer(saved, "run_number", -1)), saved_text(saved, "run"),
                                saved_text(saved, "label"),
                                unknown_text(saved, {"prompt", "run", "run_number", "label"})});
        if (!can_be_label(found.labels.back().label)) {
            found.labels.pop_back();
            throw std::invalid_argument("no label");
        }
    });
    if (contents.contains("view") && !contents["view"].is_object() && !contents["view"].is_null())
        found.not_understood.emplace_back("view");
    return found;
}

json with_fields_of_later_versions(json object, const std::string& unknown_json) {
    if (!unknown_json.empty()) object.update(json::parse(unknown_json));
    return object;
}

json annotations_json(const Annotations& of) {
    json all = {{"pins", json::object()}};
    for (const char* list : annotation_lists) all[list] = json::array();
    for (const auto& [prompt, tokens] : of.pins)
        if (!tokens.empty()) all["pins"][std::to_string(prompt)] = tokens;
    for (const Note& note : of.notes) {
        const json known = {
            {"prompt", note.prompt}, {"tokens", {note.first_token, note.last_token}}, {"text", note.text}};
        all["notes"].push_back(with_fields_of_later_versions(known, note.unknown_json));
    }
    for (const FurtherAnswer& answer : of.answers) {
        if (!answer.finished || !answer.error.empty()) continue;
        json known = {{"prompt", answer.prompt},
                      {"run", answer.run},
                      {"run_number", answer.run_number},
                      {"question", answer.question},
                      {"answer", answer.text}};
        if (!answer.remark.empty()) known["remark"] = answer.remark;
        all["further_answers"].push_back(with_fields_of_later_versions(known, answer.unknown_json));
    }
    for (const GivenLabel& given : of.labels) {
        const json known = {
            {"prompt", given.prompt}, {"run", given.run}, {"run_number", given.run_number}, {"label", given.label}};
        all["labels"].push_back(with_fields_of_later_versions(known, given.unknown_json));
    }
    for (const KeptWhatIf& what_if : of.what_ifs) {
        json known = {{"prompt", what_if.prompt},
                      {"run", what_if.run},
                      {"run_number", what_if.run_number},
                      {"parameters", bounded_json::parse_or_discard(what_if.parameters_json)},
                      {"budget", what_if.budget}};
        if (!what_if.answer_json.empty()) known["answer"] = bounded_json::parse_or_discard(what_if.answer_json);
        all["what_ifs"].push_back(with_fields_of_later_versions(known, what_if.unknown_json));
    }
    return all;
}

json annotations_json(const Document& document) {
    return annotations_json(Annotations{document.pins,
                                        document.notes,
                                        document.further_answers(),
                                        document.kept_what_ifs(),
                                        document.given_labels(),
                                        {}});
}

bool holds(const json& list, const json& value) { return std::find(list.begin(), list.end(), value) != list.end(); }

/// Returns `theirs` with the changes from `base` to `ours`.
json merged_list(const json& base, const json& ours, const json& theirs) {
    json all = json::array();
    for (const json& value : theirs)
        if (holds(ours, value) || !holds(base, value)) all.push_back(value);
    for (const json& value : ours)
        if (!holds(base, value) && !holds(all, value)) all.push_back(value);
    return all;
}

json merged_pins(const json& base, const json& ours, const json& theirs) {
    const auto of = [](const json& pins, const std::string& prompt) { return pins.value(prompt, json::array()); };
    json all = json::object();
    for (const json* pins : {&theirs, &ours}) {
        for (const auto& [prompt, tokens] : pins->items()) {
            json both = merged_list(of(base, prompt), of(ours, prompt), of(theirs, prompt));
            std::sort(both.begin(), both.end());
            if (!both.empty()) all[prompt] = std::move(both);
        }
    }
    return all;
}

json merged_view(const json& base, const json& ours, const json& theirs) {
    if (ours == base) return theirs;
    json view = ours.is_null() ? json::object() : ours;
    view.update(unknown_members_of(theirs, {"prompt", "hidden", "mark", "a", "b", "pair_alone", "selection"}));
    if (view.contains("selection") && theirs.is_object() && theirs.contains("selection"))
        view["selection"].update(
            unknown_members_of(theirs["selection"], {"run", "layer", "kv_head", "query_head", "tokens", "step"}));
    return view.empty() ? json() : view;
}

json view_of(const json& contents) {
    const auto found = contents.find("view");
    return found != contents.end() && found->is_object() ? *found : json();
}

struct InFile {
    fs::path path;
    StoredJson stored;
    Annotations known;

    explicit InFile(const fs::path& trace)
        : path(annotations_path(trace)),
          stored(read_stored_json(path, notes_key, notes_version)),
          known(annotations_in(stored.contents)) {
        if (known.not_understood.empty()) return;
        stored.state = StoredJson::State::damaged;
        stored.why = fmt::format("{} is damaged: it has invalid values at {}", path.string(),
                                 fmt::join(known.not_understood, ", "));
    }
    bool is_sound() const {
        return stored.state == StoredJson::State::sound || stored.state == StoredJson::State::absent;
    }
};

json file_contents(const json& base, const json& ours, const InFile& file) {
    const bool is_known = file.stored.state != StoredJson::State::absent && !file.stored.contents.empty();
    const json theirs = is_known ? annotations_json(file.known) : base;
    const json their_view = is_known ? view_of(file.stored.contents) : view_of(base);
    json all =
        unknown_members_of(file.stored.contents, {"pins", "notes", "further_answers", "what_ifs", "labels", "view"});
    all.emplace(notes_key, notes_version);
    all["pins"] = merged_pins(base["pins"], ours["pins"], theirs["pins"]);
    for (const char* list : annotation_lists) {
        json both = merged_list(base[list], ours[list], theirs[list]);
        if (!both.empty() || std::string_view(list) == "notes") all[list] = std::move(both);
    }
    json view = merged_view(view_of(base), view_of(ours), their_view);
    if (!view.is_null()) all["view"] = std::move(view);
    return all;
}

}  // namespace

fs::path annotations_path(const fs::path& trace) {
    const StoredJson usual = read_stored_json(usual_path(trace), notes_key, notes_version);
    std::error_code error;
    const bool is_of_later = usual.state == StoredJson::State::newer ||
                             (usual.state == StoredJson::State::absent && fs::exists(path_beside_later(trace), error));
    return is_of_later ? path_beside_later(trace) : usual_path(trace);
}

std::vector<fs::path> annotation_files(const fs::path& trace) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const fs::path& file : {usual_path(trace), path_beside_later(trace)})
        if (fs::exists(file, error)) files.push_back(file);
    return files;
}

json load_trace_display(const fs::path& trace) { return view_of(InFile(trace).stored.contents); }

namespace {

/// Returns `trace`, or the former folder of the unfinished trace if annotations exist only under the folder's name.
fs::path annotated(const fs::path& trace) {
    const fs::path unfinished = trace::part_folder_of(trace);
    std::error_code error;
    const bool are_left = annotation_files(trace).empty() && !annotation_files(unfinished).empty();
    return are_left && !fs::exists(unfinished, error) ? unfinished : trace;
}

}  // namespace

void load_annotations(Document& document) {
    const fs::path trace = annotated(document.path());
    InFile file(trace);
    if (const StoredJson usual = read_stored_json(usual_path(trace), notes_key, notes_version);
        usual.state == StoredJson::State::newer)
        document.annotations_notices.push_back(fmt::format("{}. It is not changed, and new annotations are saved in {}",
                                                           usual.why, file.path.filename().string()));
    if (!file.is_sound())
        document.annotations_notices.push_back(fmt::format(
            "{}. The invalid parts are not shown. The file stays unchanged until you add an annotation; then it is "
            "renamed and a new file is written",
            file.stored.why));
    document.pins = std::move(file.known.pins);
    document.notes = std::move(file.known.notes);
    document.saved_what_ifs = std::move(file.known.what_ifs);
    document.set_further_answers(std::move(file.known.answers));
    document.set_given_labels(std::move(file.known.labels));
    json base = annotations_json(document);
    base["view"] = view_of(file.stored.contents);
    if (trace == document.path())
        document.annotations_in_file = base.dump();
    else
        document.annotations_changed = true;  // so that the annotations are saved next to the trace
}

void save_annotations(Document& document, const json& view) {
    json base = document.annotations_in_file.empty() ? annotations_json(Annotations{})
                                                     : json::parse(document.annotations_in_file);
    json ours = annotations_json(document);
    ours["view"] = view;
    const InFile file(document.path());
    const auto without_view = [](const json& all) { return unknown_members_of(all, {"view"}); };
    if (!file.is_sound() && without_view(base) == without_view(ours)) return;
    try {
        if (!file.is_sound()) {
            const fs::path aside = set_aside(file.path);
            document.annotations_notices.push_back(
                fmt::format("{}. The file was renamed to {}, and the annotations shown are saved in a new file",
                            file.stored.why, aside.filename().string()));
        }
        const json all = file_contents(base, ours, file);
        const bool is_empty = unknown_members_of(all, {notes_key, "pins", "notes"}).empty() && all["pins"].empty() &&
                              all["notes"].empty();
        if (is_empty) {
            fs::remove(file.path);
        } else {
            write_stored_json(file.path, all);
        }
    } catch (const std::exception& error) {
        throw std::runtime_error(
            fmt::format("the annotations of {} are not saved: {}. They stay in memory, and kvscope will try again",
                        document.name(), error.what()));
    }
    // Replace invalid UTF-8, because the mark may contain an incomplete character.
    document.annotations_in_file = ours.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace kvscope::gui
