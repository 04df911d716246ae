#include "analysis/runs/sentences.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

using namespace kvscope::analysis;

namespace {

using Texts = std::vector<std::string>;

Texts sentence_texts(const Texts& tokens, size_t n_tokens) {
    const TokenTexts texts = join_tokens_into_text(tokens);
    Texts said;
    for (const TokenSpan span : sentences_of(texts, n_tokens))
        said.emplace_back(whole_characters_of_tokens(texts, span.first, span.last));
    return said;
}

Texts sentence_texts(const Texts& tokens) { return sentence_texts(tokens, tokens.size()); }

/// Uses one token per byte, so that only the text determines where sentences end. @returns the sentences' texts
Texts of_bytes(const std::string& text) {
    static constexpr const char* digits = "0123456789ABCDEF";
    Texts tokens;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        tokens.push_back(byte < 0x80 ? std::string(1, c)
                                     : std::string("⟨") + digits[byte / 16] + digits[byte % 16] + "⟩");
    }
    return sentence_texts(tokens);
}

}  // namespace

TEST_CASE("a sentence ends at a mark before white space or the end, and at line breaks") {
    CHECK(sentence_texts({"One", " is", " 3", ".", "14", ".", " Two", "!", " Three", "?"}) ==
          Texts{"One is 3.14.", " Two!", " Three?"});
    CHECK(sentence_texts({"a", "\n", "b", "\n\n", "c"}) == Texts{"a\n", "b\n\n", "c"});
    CHECK(sentence_texts({"He said", " \"no", ".\"", " Then", " (", "yes", ".)", " End"}) ==
          Texts{"He said \"no.\"", " Then (yes.)", " End"});
    CHECK(sentence_texts({"Wait", "...", " what", "?!", " Yes"}) == Texts{"Wait...", " what?!", " Yes"});
}

TEST_CASE("an abbreviation within a sentence does not end it") {
    CHECK(of_bytes("Ms. Adeyemi met Dr. Li. She left.") == Texts{"Ms. Adeyemi met Dr. Li.", " She left."});
    CHECK(of_bytes("Use oil, e.g. olive. See Fig. 3 and No. 7. Done.") ==
          Texts{"Use oil, e.g. olive.", " See Fig. 3 and No. 7.", " Done."});
    CHECK(of_bytes("Was it? No. They went to St. Élan (cf. Mr. Ode).") ==
          Texts{"Was it?", " No.", " They went to St. Élan (cf. Mr. Ode)."});
    CHECK(of_bytes("the dr. who") == Texts{"the dr.", " who"});
    CHECK(of_bytes("Mr.\nOde") == Texts{"Mr.\n", "Ode"});
    CHECK(of_bytes("It ends with Mr.") == Texts{"It ends with Mr."});
}

TEST_CASE("sentences of other scripts are split") {
    CHECK(of_bytes("今日は。明日！本当？はい") == Texts{"今日は。", "明日！", "本当？", "はい"});
    CHECK(of_bytes("他说：「走吧。」他走了。") == Texts{"他说：「走吧。」", "他走了。"});
    CHECK(of_bytes("यह एक है। वह दो है।") == Texts{"यह एक है।", " वह दो है।"});
    CHECK(of_bytes("كيف حالك؟ بخير.") == Texts{"كيف حالك؟", " بخير."});
    CHECK(of_bytes("So … ja.") == Texts{"So …", " ja."});
}

TEST_CASE("a token across a boundary belongs to the sentence in which it begins") {
    CHECK(sentence_texts({"Yes", ". No", " more", "."}) == Texts{"Yes. No", " more."});
    CHECK(sentence_texts({"\n\n", "First", ".\n\n", " ", "\n", "Second"}) == Texts{"\n\n", "First.\n\n \n", "Second"});
}

TEST_CASE("each token is in one sentence, and no sentence is longer than 200 characters") {
    Texts tokens;
    for (int i = 0; i < 200; ++i) tokens.push_back(" word" + std::to_string(i));
    tokens.push_back(std::string(300, 'x'));
    for (int i = 0; i < 300; ++i) tokens.emplace_back("字");
    const TokenTexts texts = join_tokens_into_text(tokens);
    size_t next = 0;
    for (const TokenSpan span : sentences_of(texts, tokens.size())) {
        CHECK(span.first == next);
        REQUIRE(span.last >= span.first);
        next = span.last + 1;
        size_t characters = 0;
        for (size_t token = span.first; token <= span.last; ++token)
            characters += tokens[token] == "字" ? 1 : tokens[token].size();
        CHECK((characters <= 200 || span.first == span.last));
        if (span.first > 0 && span.first < 200) CHECK(tokens[span.first].front() == ' ');
    }
    CHECK(next == tokens.size());
}

TEST_CASE("text of a chat template is not ranked") {
    const auto ranked = [](const Texts& tokens, bool has_template) {
        const TokenTexts texts = join_tokens_into_text(tokens);
        Texts said;
        for (const TokenSpan span : split_into_sentences_to_rank(texts, tokens.size(), has_template))
            said.emplace_back(whole_characters_of_tokens(texts, span.first, span.last));
        return said;
    };
    const Texts system = {"<|im_start|>", "system", "\n", "You are helpful", " and harmless", ".", "<|im_end|>", "\n"};
    const Texts user = {"<|im_start|>", "user", "\n", "The code is", " 58-21.", " Ok", ".", "<|im_end|>", "\n"};
    const Texts answer = {"<|im_start|>", "assistant", "\n"};
    Texts chat = system;
    for (const Texts& part : {user, answer}) chat.insert(chat.end(), part.begin(), part.end());
    CHECK(ranked(chat, true) == Texts{"The code is 58-21. Ok."});
    CHECK(ranked(chat, false) == Texts{"You are helpful and harmless.", "The code is 58-21. Ok."});
    CHECK(ranked({"<|begin_of_text|>",
                  "<|start_header_id|>",
                  "system",
                  "<|end_header_id|>",
                  "\n\n",
                  "Today Date",
                  ":",
                  " 26 Jul 2024",
                  "\n\n",
                  "<|eot_id|>",
                  "<|start_header_id|>",
                  "user",
                  "<|end_header_id|>",
                  "\n\n",
                  "Who was",
                  " the butler?",
                  "<|eot_id|>",
                  "<|start_header_id|>",
                  "assistant",
                  "<|end_header_id|>",
                  "\n\n"},
                 true) == Texts{"Who was the butler?"});
    CHECK(ranked({"<s>", "[INST]", " Who was the", " butler?", "[/INST]"}, true) == Texts{" Who was the butler?"});
    CHECK(ranked({"<|user|>", "\n", "A long enough", " line.", "<|end|>", "\n", "<|assistant|>", "\n"}, true) ==
          Texts{"A long enough line."});
    CHECK(ranked({"Some", " <b>", "bold", "</b>", " words."}, false) == Texts{"Some <b>bold</b> words."});
    CHECK(ranked(answer, true).empty());
}

TEST_CASE("sentences contain the tokens that policies see") {
    CHECK(sentence_texts({"One", ".", " Two", ".", " Question", "?"}, 3) == Texts{"One.", " Two"});
    CHECK(sentence_texts({"One"}, 0).empty());
    CHECK(sentence_texts({}, 0).empty());
}

TEST_CASE("fragments are joined with a neighbor on their line") {
    const auto ranked = [](const std::string& text) {
        Texts tokens;
        for (const char c : text) tokens.emplace_back(1, c);
        const TokenTexts texts = join_tokens_into_text(tokens);
        Texts said;
        for (const TokenSpan span : split_into_sentences_to_rank(texts, tokens.size(), false))
            said.emplace_back(whole_characters_of_tokens(texts, span.first, span.last));
        return said;
    };
    CHECK(ranked("Was it the butler? No. He had left by then. Oh.") ==
          Texts{"Was it the butler?", " No. He had left by then. Oh."});
    CHECK(ranked("1. The first of the items.\n2. The second one of them.\n") ==
          Texts{"1. The first of the items.\n", "2. The second one of them.\n"});
    CHECK(ranked("A line of some words\nand\nanother line of words") ==
          Texts{"A line of some words\nand\n", "another line of words"});
    CHECK(ranked("Hm.") == Texts{"Hm."});
    CHECK(ranked("Ms. Adeyemi met Dr. Li in Lagos. She left.") == Texts{"Ms. Adeyemi met Dr. Li in Lagos. She left."});
}
