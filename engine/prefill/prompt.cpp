#include "engine/prefill/prompt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/bounded_json.h"
#include "common/json.h"
#include "common/sha256.h"
#include "common/utf8.h"
#include "engine/common/engine_error.h"
#include "engine/files/checkpoint_error.h"
#include "engine/prefill/evidence_ranges.h"
#include "engine/tokenizer/tokens_of_ranges.h"
#include "trace/creation_time.h"

namespace kvscope::engine {
namespace {

std::string origin_of(const PromptOptions& options) {
    return options.origin.empty() ? fmt::format("the prompt '{}'", options.name) : options.origin;
}

std::vector<std::string> answers_of(const trace::ResultRow& row) {
    const auto list = bounded_json::parse_or_discard(row.answers_json);
    std::vector<std::string> answers;
    if (!list.is_array()) return answers;
    for (const auto& answer : list)
        if (answer.is_string()) answers.push_back(answer);
    return answers;
}

void require_room(const Model& model, const Prompt& prompt, int64_t n_new, const std::string& origin) {
    const auto n = static_cast<int64_t>(prompt.ids.size());
    const int64_t limit = model.config().context_length;
    const int64_t room = limit - n;
    if (n_new <= room) return;
    if (n_new >= limit)
        throw UsageError(
            fmt::format("{}: {} new tokens were requested, but the model's context for prompt and answer is {}: "
                        "ask for fewer "
                        "with -n",
                        origin, n_new, limit));
    throw UsageError(
        fmt::format("{}: the prompt has {} tokens and {} new tokens were requested, but the model's context is {}: "
                    "shorten the prompt "
                    "by {} tokens or ask for fewer new tokens with -n",
                    origin, n, n_new, limit, n_new - room));
}

/// Returns the context that the model's template turns into exactly the prompt's text; empty if there is none.
std::string context_of(const Model& model, const Prompt& prompt, const std::stop_token& stop) {
    const bool templated = !prompt.chat_template.empty();
    if (templated && !model.chat_template()) return {};
    const auto chat_template = templated ? model.chat_template() : std::nullopt;
    const auto render = [&](std::string_view context, std::string_view question) {
        return checkpoint::render_prompt(chat_template, context, question, prompt.rendered_at, stop).text;
    };
    try {
        const std::string_view stand_in = "(the context)";
        const std::string around = render(stand_in, "");
        const size_t before = around.rfind(stand_in);
        if (before == std::string::npos || prompt.text.size() + stand_in.size() < around.size()) return {};
        std::string context = prompt.text.substr(before, prompt.text.size() + stand_in.size() - around.size());
        const std::string ending = prompt.question.empty() ? "" : "\n\n" + prompt.question;
        if (!context.ends_with(ending)) return {};
        context.resize(context.size() - ending.size());
        return render(context, prompt.question) == prompt.text ? context : "";
    } catch (const checkpoint::CheckpointError&) {
        return {};
    }
}

nlohmann::json recipe_entry_of(const trace::Reader& reader, int prompt) {
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    const auto number = static_cast<size_t>(reader.prompt_number(prompt));
    if (!recipe.is_object() || !recipe.contains("prompts") || !recipe["prompts"].is_array())
        return nlohmann::json::object();
    const auto& prompts = recipe["prompts"];
    return number < prompts.size() && prompts[number].is_object() ? prompts[number] : nlohmann::json::object();
}

/// Recipes of earlier versions, which did not parse control tokens, lack the field.
bool parsed_special(const nlohmann::json& entry) {
    const auto found = entry.find("special");
    return found != entry.end() && found->is_boolean() && found->get<bool>();
}

/// Returns the time at which a prompt was rendered. A prompt copied from another trace keeps its own time.
std::time_t rendered_at(const trace::Reader& reader, const nlohmann::json& entry) {
    const auto found = entry.find("rendered");
    const bool is_said = found != entry.end() && found->is_string();
    return trace::time_of_utc(is_said ? found->get<std::string>() : reader.created_utc()).value_or(std::time(nullptr));
}

/// Finds the context in the text and sets the tokens that precede it or contain a part of the evidence or the answers.
/// @param evidence places of the context @param answers places of the context; if empty, the evidence
void mark_tokens(Prompt& prompt, const checkpoint::RenderedPrompt& rendered, const checkpoint::Encoding& encoding,
                 const std::vector<ByteRange>& evidence, const std::vector<ByteRange>& answers) {
    size_t end = rendered.question_begin - prompt.separator.size();  // of the context
    if (prompt.question.empty()) {
        const size_t begin = rendered.text.rfind(prompt.context);
        if (begin == std::string::npos) return;
        end = begin + prompt.context.size();
    }
    // A template may strip white space from the context's begin, so places are counted from its end.
    const auto tokens_of = [&](std::vector<ByteRange> places) {
        for (auto& [first, last] : places) {
            first = end - std::min(end, prompt.context.size() - first);
            last = end - std::min(end, prompt.context.size() - last);
        }
        auto tokens = checkpoint::tokens_of_ranges(encoding.ends, std::move(places));
        std::erase_if(tokens, [&](uint32_t token) { return token >= prompt.n_context; });
        return tokens;
    };
    prompt.evidence = tokens_of(evidence);
    prompt.answer_tokens = answers.empty() ? prompt.evidence : tokens_of(answers);
    const size_t begin = end - std::min(end, prompt.context.size());
    if (!prompt.chat_template.empty() && begin > 0)
        prompt.n_system = static_cast<int64_t>(encoding.first_token_from(begin));
}

/// Returns a text's control tokens with counts, such as "<|im_end|> (2), <|im_start|> (1)".
std::string control_tokens_in(const checkpoint::Tokenizer& tokenizer, const std::string& text,
                              const std::stop_token& stop) {
    const auto parsed = tokenizer.encode(text, false, true, stop), spelt = tokenizer.encode(text, false, false, stop);
    if (parsed == spelt) return {};
    std::map<int32_t, int64_t> counts;  // the token for unknown characters is a control token in both encodings
    for (const int32_t id : parsed) counts[id] += tokenizer.is_special(id);
    for (const int32_t id : spelt) counts[id] -= tokenizer.is_special(id);
    std::vector<std::string> names;
    for (const auto& [id, count] : counts)
        if (count > 0) names.push_back(fmt::format("{} ({})", tokenizer.shown(id, stop), count));
    return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns the number of characters for which neither a token nor byte tokens exist.
int64_t count_without_token(const checkpoint::Tokenizer& tokenizer, std::string_view text,
                            const std::stop_token& stop) {
    std::map<std::string_view, bool> has_token;
    int64_t count = 0;
    for (size_t at = 0; at < text.size();) {
        const auto step = decode_utf8_character(text, at);
        const auto [found, is_new] = has_token.try_emplace(text.substr(at, step.bytes), true);
        // A normalizer may remove white space at the ends of a text.
        if (is_new && !is_white_space(step.code))
            found->second = !tokenizer.encode(found->first, false, false, stop).empty();
        count += found->second ? 0 : 1;
        at += step.bytes;
    }
    return count;
}

}  // namespace

checkpoint::Encoding encode_like_prompt(const Model& model, const Prompt& prompt, std::string_view text,
                                        const std::stop_token& stop) {
    return model.tokenizer().encode_with_ends(text, prompt.chat_template.empty(), prompt.parses_special, stop);
}

std::vector<std::string> remarks_on_tokens(const Model& model, std::span<const Prompt> prompts, bool parse_special,
                                           const std::stop_token& stop) {
    struct Found {
        std::string first, names;
        int n = 0;
        bool templated = false, parsed = false;
        bool operator==(const Found& other) const {
            return names == other.names && templated == other.templated && parsed == other.parsed;
        }
    };
    const auto named = [](const std::string& first, int64_t n) {
        return n == 1 ? first : fmt::format("{} and {} more", first, n - 1);
    };
    std::vector<Found> all;
    std::vector<std::string> remarks;
    for (const Prompt& prompt : prompts) {
        const bool templated = !prompt.chat_template.empty();
        if (templated && !parse_special && remarks.empty())
            remarks.emplace_back(
                "--no-special has no effect on chat templates, whose control tokens are always parsed; add "
                "--no-template");
        Found found{prompt.name, control_tokens_in(model.tokenizer(), prompt.content(), stop), 1, templated,
                    prompt.parses_special};
        if (found.names.empty()) continue;
        const auto same = std::find(all.begin(), all.end(), found);
        same == all.end() ? all.push_back(std::move(found)) : void(++same->n);
    }
    for (const Found& found : all)
        remarks.push_back(fmt::format(
            "{}: the text contains control tokens: {}. {}", named(found.first, found.n), found.names,
            found.templated ? "They are read as control tokens, as transformers and llama.cpp read them, and can end "
                              "the turn that the chat template begins"
            : found.parsed  ? "They are read as control tokens; with --no-special they are read as plain text"
                            : "They are read as plain text (--no-special)"));

    std::string first;
    int64_t n_prompts = 0, n_characters = 0;
    for (const Prompt& prompt : prompts) {
        const int64_t n = count_without_token(model.tokenizer(), prompt.content(), stop);
        if (n == 0) continue;
        if (n_prompts++ == 0) first = prompt.name;
        n_characters += n;
    }
    if (n_prompts > 0)
        remarks.push_back(
            fmt::format("{}: the model's vocabulary has no token for some characters, which are omitted: {}",
                        named(first, n_prompts), n_characters));
    return remarks;
}

void require_token_embeddings(const Model& model, std::span<const int32_t> ids, const std::string& origin) {
    const int64_t n_embeddings = model.config().vocab_size;
    const auto found = std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id < 0 || id >= n_embeddings; });
    if (found == ids.end()) return;
    throw UsageError(fmt::format(
        "{}: the text has the token {} ({}), but the model has embeddings only for the first {} tokens of its "
        "tokenizer: remove the token, or use the tokenizer that belongs to the model",
        origin, *found, *found < 0 ? "none" : model.tokenizer().shown(*found), n_embeddings));
}

void require_utf8(std::string_view text, const std::string& origin) {
    const size_t at = first_invalid_utf8(text);
    if (at == std::string_view::npos) return;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const bool is_utf16 = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
    throw UsageError(fmt::format(
        "{}: expected text in UTF-8, found the byte 0x{:02X} in line {}, at offset {}{}; convert it to UTF-8 first",
        origin, static_cast<unsigned char>(text[at]), line, at, is_utf16 ? ", which looks like UTF-16" : ""));
}

std::string hash_of_sample(std::string_view context, std::string_view question, std::span<const std::string> answers) {
    return sha256_of(nlohmann::json::array({context, question, nlohmann::json(answers)}).dump());
}

std::string fingerprint_of_tokens(std::span<const int32_t> ids) {
    Sha256 hash;
    hash.update({reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
    return hash.hex_digest().substr(0, 16);
}

Prompt tokenize_prompt(const Model& model, std::string_view context, std::string_view question,
                       const PromptOptions& options) {
    const std::string origin = origin_of(options);
    if (context.find_first_not_of(" \t\r\n") == std::string_view::npos)
        throw UsageError(origin + ": the prompt is empty: give a text with -p or a file with -f");
    require_utf8(context, origin);
    require_utf8(question, "the question");
    const auto& tokenizer = model.tokenizer();
    const bool templated = options.use_template && model.chat_template().has_value();
    const std::time_t now = options.now.value_or(std::time(nullptr));
    const auto rendered = checkpoint::render_prompt(templated ? model.chat_template() : std::nullopt, context, question,
                                                    now, options.stop, options.separator);

    Prompt prompt;
    prompt.rendered_at = now;
    prompt.name = options.name;
    prompt.context = std::string(context);
    prompt.text = rendered.text;
    prompt.question = std::string(question);
    prompt.separator = options.separator;
    prompt.answers = options.answers;
    prompt.sample_hash = hash_of_sample(context, question, options.answers);
    prompt.context_hash = sha256_of(context);
    if (templated) prompt.chat_template = model.chat_template()->source();
    prompt.query_aware = options.query_aware || question.empty();
    prompt.parses_special = templated || options.parse_special;
    const auto encoding = encode_like_prompt(model, prompt, prompt.text, options.stop);
    prompt.ids = encoding.ids;
    prompt.n_context =
        static_cast<int64_t>(question.empty() ? prompt.ids.size() : encoding.first_token_from(rendered.question_begin));
    if (prompt.ids.empty()) throw UsageError(origin + ": the model's tokenizer has no tokens for this text");
    if (prompt.n_visible() == 0)
        throw UsageError(
            fmt::format("{}: its first token reaches into the question, so that nothing is left for policies to "
                        "compress: give a longer context, or let policies see the question",
                        origin));

    mark_tokens(prompt, rendered, encoding,
                options.spans.empty() ? find_phrases(context, options.answers) : options.spans, options.answer_spans);

    require_token_embeddings(model, prompt.ids, origin);
    if (!options.may_exceed) require_room(model, prompt, options.n_new, origin);
    prompt.token_text.reserve(prompt.ids.size());
    for (const int32_t id : prompt.ids) prompt.token_text.push_back(tokenizer.shown(id, options.stop));
    return prompt;
}

namespace {

void require_model_of(const trace::Reader& reader, const Model& model) {
    if (reader.model().fingerprint == model.fingerprint()) return;
    throw UsageError(
        fmt::format("{}: the trace was made with the model {} (fingerprint {}), but the given model is {} "
                    "(fingerprint {}): give the trace's model with -m",
                    reader.path().string(), reader.model().name, reader.model().fingerprint, model.attributes().name,
                    model.fingerprint()));
}

/// Sets what follows from text, tokens and recipe, and what the prompt's first row of results contains.
void complete_stored_prompt(Prompt& stored, const Model& model, const trace::Reader& reader,
                            const nlohmann::json& recipe_entry, const std::optional<trace::ResultRow>& row,
                            const std::string& origin, int64_t n_new, const std::stop_token& stop) {
    stored.rendered_at = rendered_at(reader, recipe_entry);
    stored.context = context_of(model, stored, stop);
    if (row) {
        stored.answers = answers_of(*row);
        stored.sample_hash = row->sample_hash;
        stored.context_hash = row->context_hash;
    }
    if (stored.sample_hash.empty() && !stored.context.empty())
        stored.sample_hash = hash_of_sample(stored.context, stored.question, stored.answers);
    if (stored.context_hash.empty() && !stored.context.empty()) stored.context_hash = sha256_of(stored.context);
    if (!stored.context.empty()) {
        const size_t question_begin = stored.question.empty() ? stored.text.size() : stored.text.rfind(stored.question);
        const auto encoding = encode_like_prompt(model, stored, stored.text, stop);
        if (encoding.ids == stored.ids)
            mark_tokens(stored, {stored.text, question_begin}, encoding, find_phrases(stored.context, stored.answers),
                        {});
    }
    // The evidence of a task's sample can be more than its answers.
    if (recipe_entry.contains("evidence"))
        if (auto evidence = evidence_of_ranges(recipe_entry["evidence"], stored.n_context))
            stored.evidence = std::move(*evidence);
    require_token_embeddings(model, stored.ids, origin);
    require_room(model, stored, n_new, origin);
}

/// Returns the name of the first sample in a recipe's list of prompts; empty if there are only prompts.
std::string first_sample(const nlohmann::json& entries) {
    for (const nlohmann::json& entry : entries)
        if (entry.is_object() && entry.contains("number")) return entry.value("name", "");
    return {};
}

nlohmann::json recipe_entries(const trace::Reader& reader) {
    const auto recipe = bounded_json::parse_or_discard(reader.recipe_json());
    return recipe.is_object() ? recipe.value("prompts", nlohmann::json::array()) : nlohmann::json();
}

/// Says why a trace has no prompt, and which sample can be read instead.
std::string without_prompts(const trace::Reader& reader) {
    const std::string file = reader.path().string(), sample = first_sample(recipe_entries(reader));
    if (sample.empty()) return fmt::format("{}: the trace stores no prompts, so that none can be read from it", file);
    return fmt::format("{}: the trace has no prompts, only samples of {}: name one, such as {}:{}", file,
                       fmt::join(reader.result_tasks(), ", "), file, sample);
}

}  // namespace

Prompt read_prompt_from_trace(const Model& model, const trace::Reader& reader, int prompt, int64_t n_new,
                              const std::stop_token& stop) {
    const std::string file = reader.path().string();
    const int n = reader.n_prompts();
    if (n == 0) throw UsageError(without_prompts(reader));
    if (prompt < 0 || prompt >= n)
        throw UsageError(n == 1 ? fmt::format("{}: there is no prompt {}; the trace has only prompt 0", file, prompt)
                                : fmt::format("{}: there is no prompt {}; there are 0 to {}", file, prompt, n - 1));
    require_model_of(reader, model);
    const trace::PromptAttributes& attributes = reader.prompt(prompt);
    Prompt stored;
    stored.name = attributes.name;
    stored.text = attributes.text;
    stored.question = attributes.question;
    stored.chat_template = attributes.chat_template;
    stored.ids = reader.token_ids(prompt);
    stored.token_text = reader.token_text(prompt);
    stored.n_context = attributes.n_context;
    stored.query_aware = attributes.query_aware;
    const auto entry = recipe_entry_of(reader, prompt);
    stored.parses_special = !stored.chat_template.empty() || parsed_special(entry);
    const auto row = reader.n_runs(prompt) > 0 ? reader.stored_row(prompt, 0) : std::nullopt;
    complete_stored_prompt(stored, model, reader, entry, row, fmt::format("{}, prompt {}", file, prompt), n_new, stop);
    return stored;
}

Prompt read_sample_from_trace(const Model& model, const trace::Reader& reader, const std::string& sample, int64_t n_new,
                              const std::stop_token& stop) {
    const bool is_hidden = sample.ends_with(hidden_question_suffix);
    const std::string wanted = is_hidden ? sample.substr(0, sample.size() - hidden_question_suffix.size()) : sample;
    const std::string file = reader.path().string();
    const nlohmann::json entries = recipe_entries(reader);
    const std::string first = first_sample(entries);
    const nlohmann::json* found = nullptr;
    bool has_hidden = false;
    for (const nlohmann::json& entry : entries) {
        if (!entry.is_object() || !entry.contains("number")) continue;  // a prompt, not a sample
        const auto name = entry.value("name", "");
        const bool is_seen = entry.value("query_aware", true);
        has_hidden = has_hidden || !is_seen;
        if (name == wanted && (is_hidden ? !is_seen : is_seen || !found)) found = &entry;
    }
    if (!found)
        throw UsageError(
            first.empty()
                ? fmt::format("{}: the trace has no samples of a task, so '{}' must be the number of a prompt", file,
                              sample)
                : fmt::format("{}: no sample is named '{}'; a sample's name is its `sample_id`, such as '{}'{}", file,
                              sample, first,
                              has_hidden ? fmt::format(", or '{}{}'", first, hidden_question_suffix) : ""));
    require_model_of(reader, model);
    Prompt stored;
    try {
        stored.name = sample;
        stored.text = found->at("text");
        stored.question = found->at("question");
        stored.n_context = found->at("n_context");
        stored.query_aware = found->at("query_aware");
    } catch (const nlohmann::json::exception&) {
        throw UsageError(fmt::format("{}: the recipe lacks the text of the sample '{}'", file, sample));
    }
    const bool is_templated = !found->contains("special");
    if (is_templated && model.chat_template()) stored.chat_template = model.chat_template()->source();
    stored.parses_special = is_templated || parsed_special(*found);
    stored.ids = encode_like_prompt(model, stored, stored.text, stop).ids;
    if (found->contains("tokens") && found->at("tokens") != fingerprint_of_tokens(stored.ids))
        throw UsageError(fmt::format(
            "{}: another version of the tokenizer or of kvscope wrote the file, and its tokens of the sample "
            "'{}' differ from today's: make the trace again",
            file, sample));
    for (const int32_t id : stored.ids) stored.token_text.push_back(model.tokenizer().shown(id, stop));
    std::optional<trace::ResultRow> row;
    for (const std::string& task : reader.result_tasks())
        for (const trace::ResultRow& one : reader.results(task))
            if (one.sample_id == wanted && (one.question_seen != 0) == stored.query_aware && !row) row = one;
    complete_stored_prompt(stored, model, reader, *found, row, fmt::format("{}, sample {}", file, sample), n_new, stop);
    return stored;
}

}  // namespace kvscope::engine
