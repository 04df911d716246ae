#include "engine/prompt.h"

#include <fmt/format.h>

#include "engine/error.h"

namespace kvscope::engine {
namespace {

void require_room(const Model& model, const Prompt& prompt, int64_t n_new) {
    const auto n = static_cast<int64_t>(prompt.ids.size());
    const int64_t limit = model.transformer().config().context_length;
    if (n + n_new <= limit) return;
    throw UsageError(fmt::format(
        "the prompt '{}' has {} tokens and {} more are to be generated, but the model's context is {}: shorten the "
        "prompt by {} tokens or ask for fewer new ones with -n",
        prompt.name, n, n_new, limit, n + n_new - limit));
}

}  // namespace

Prompt prepare_prompt(const Model& model, std::string_view context, std::string_view question,
                      const PromptOptions& options) {
    if (context.find_first_not_of(" \t\r\n") == std::string_view::npos)
        throw UsageError("the prompt is empty: give a text with -p or a file with -f");
    const auto& tokenizer = model.tokenizer();
    const bool templated = options.use_template && model.chat_template().has_value();
    const auto rendered =
        checkpoint::render_prompt(templated ? model.chat_template() : std::nullopt, context, question);

    Prompt prompt;
    prompt.name = options.name;
    prompt.context = std::string(context);
    prompt.text = rendered.text;
    prompt.question = std::string(question);
    if (templated) prompt.chat_template = model.chat_template()->source();
    prompt.query_aware = options.query_aware || question.empty();
    const std::string_view text = prompt.text;
    prompt.ids = tokenizer.encode(text.substr(0, rendered.question_begin), !templated, templated);
    prompt.n_context = static_cast<int64_t>(prompt.ids.size());
    if (rendered.question_begin < text.size()) {
        const auto rest = tokenizer.encode(text.substr(rendered.question_begin), false, templated);
        prompt.ids.insert(prompt.ids.end(), rest.begin(), rest.end());
    }
    if (question.empty()) prompt.n_context = static_cast<int64_t>(prompt.ids.size());

    require_room(model, prompt, options.n_new);
    prompt.token_text.reserve(prompt.ids.size());
    for (const int32_t id : prompt.ids) prompt.token_text.push_back(tokenizer.shown(id));
    return prompt;
}

Prompt stored_prompt(const Model& model, const trace::Reader& reader, int prompt, int64_t n_new) {
    const std::string file = reader.path().string();
    if (prompt < 0 || prompt >= reader.n_prompts())
        throw UsageError(fmt::format("{}: there is no prompt {}; it has {}", file, prompt, reader.n_prompts()));
    if (reader.model().fingerprint != model.fingerprint())
        throw UsageError(fmt::format(
            "{}: its prompts are token ids of the model {} with the fingerprint {}, but the model given is {} with the "
            "fingerprint {}: give the trace's model with -m",
            file, reader.model().name, reader.model().fingerprint, model.attributes().name, model.fingerprint()));
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
    require_room(model, stored, n_new);
    return stored;
}

}  // namespace kvscope::engine
