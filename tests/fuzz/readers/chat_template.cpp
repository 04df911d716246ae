// The fuzzers look into the interpreter, in their own process: their limits stand for those of the program that runs
// it. Stored inputs go through that program, as models' templates do.
#include "engine/checkpoint/chat_template.h"

#include "engine/template/interpreter.h"
#include "tests/fuzz/reader.h"

namespace kvscope::fuzz {
namespace {

[[maybe_unused]] void interpret_here(std::string_view bytes) {
    chat_template::Request request;
    request.source = std::string(bytes);
    request.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    request.messages = {{"system", "Be brief."}, {"user", "Hello"}};
    request.render = request.add_generation_prompt = true;
    request.now = 1'700'000'000;
    chat_template::render_template(chat_template::parse_request(chat_template::message_to_bytes(request)));
}

[[maybe_unused]] void render(std::string_view bytes) {
    may_refuse([&] {
        const checkpoint::ChatTemplate chat_template(std::string(bytes), {{"bos_token", "<s>"}, {"eos_token", "</s>"}},
                                                     "chat_template.jinja");
        const std::vector<checkpoint::Message> messages{{"system", "Be brief."}, {"user", "Hello"}};
        chat_template.render(messages, true, 1'700'000'000);
    });
}

}  // namespace

Reader chat_template_reader() {
#ifdef KVSCOPE_FUZZ
    return {"chat_template", interpret_here};
#else
    return {"chat_template", render};
#endif
}

}  // namespace kvscope::fuzz
