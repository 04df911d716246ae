#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "common/bounded_json.h"
#include "common/json.h"
#include "engine/common/engine_error.h"
#include "engine/tasks/ruler/python_random.h"
#include "engine/tasks/ruler/subsets.h"

namespace kvscope::engine::ruler {
namespace {

constexpr std::string_view instruction =
    "Answer the question based on the given documents. Only give me the answer and do not output any other words.\n\n";
constexpr std::string_view documents_follow = "The following are given documents.\n\n";
constexpr int64_t step_of_documents = 10;

struct Question {
    std::string text;
    std::vector<std::string> answers{};
    std::vector<size_t> documents{};       ///< that belong to the question
    std::vector<size_t> more_documents{};  ///< of the same article
};

struct QuestionsOfFile {
    std::vector<Question> questions;
    std::vector<std::string> documents;  ///< sorted, each once

    /// Numbers the documents. @param of_question the documents of each question, and more documents
    void number(const std::set<std::string>& all,
                const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>& of_question) {
        documents.assign(all.begin(), all.end());
        const auto number_of = [&](const std::string& document) {
            return static_cast<size_t>(std::ranges::lower_bound(documents, document) - documents.begin());
        };
        for (size_t i = 0; i < questions.size(); ++i) {
            for (const auto& document : of_question[i].first) questions[i].documents.push_back(number_of(document));
            for (const auto& document : of_question[i].second)
                if (document != of_question[i].first[0]) questions[i].more_documents.push_back(number_of(document));
        }
    }
};

QuestionsOfFile read_squad(const nlohmann::json& json) {
    QuestionsOfFile file;
    std::set<std::string> all;
    std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> of_question;
    for (const auto& article : json.at("data")) {
        std::vector<std::string> of_article;
        for (const auto& paragraph : article.at("paragraphs"))
            of_article.push_back(paragraph.at("context").get<std::string>());
        all.insert(of_article.begin(), of_article.end());
        for (const auto& paragraph : article.at("paragraphs")) {
            for (const auto& asked : paragraph.at("qas")) {
                if (asked.at("is_impossible").get<bool>()) continue;
                Question question{.text = asked.at("question").get<std::string>()};
                for (const auto& answer : asked.at("answers"))
                    question.answers.push_back(answer.at("text").get<std::string>());
                file.questions.push_back(std::move(question));
                of_question.emplace_back(std::vector{paragraph.at("context").get<std::string>()}, of_article);
            }
        }
    }
    file.number(all, of_question);
    return file;
}

QuestionsOfFile read_hotpotqa(const nlohmann::json& json) {
    QuestionsOfFile file;
    std::set<std::string> all;
    std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>> of_question;
    for (const auto& asked : json) {
        auto& documents = of_question.emplace_back().first;
        for (const auto& context : asked.at("context")) {
            std::string document = context.at(0).get<std::string>() + "\n";
            for (const auto& sentence : context.at(1)) document += sentence.get<std::string>();
            documents.push_back(std::move(document));
        }
        all.insert(documents.begin(), documents.end());
        file.questions.push_back({asked.at("question").get<std::string>(), {asked.at("answer").get<std::string>()}});
    }
    file.number(all, of_question);
    return file;
}

QuestionsOfFile read_questions(const SubsetRequest& request, const std::string& option,
                               QuestionsOfFile (*read)(const nlohmann::json&), std::string_view expected) {
    const auto refuse = [&](std::string_view found) {
        throw UsageError(
            fmt::format("{}: expected {}, found {}: use the file that RULER's script "
                        "download_qa_dataset.sh fetches",
                        request.file_name(option), expected, found));
    };
    const auto json = bounded_json::parse_or_discard(request.files.at(option));
    if (json.is_discarded()) refuse("text that is not JSON");
    QuestionsOfFile file;
    try {
        file = read(json);
    } catch (const nlohmann::json::exception& error) {
        refuse(fmt::format("another structure ({})", error.what()));
    }
    if (file.documents.empty()) refuse("no documents");
    if (static_cast<int64_t>(file.questions.size()) < request.n_samples)
        throw UsageError(
            fmt::format("{}: expected at least {} questions for --samples {}, found {}: ask for fewer samples",
                        request.file_name(option), request.n_samples, request.n_samples, file.questions.size()));
    return file;
}

class DocumentMaker {
 public:
    DocumentMaker(const SubsetRequest& request, QuestionsOfFile file) : request_(request), file_(std::move(file)) {}

    std::vector<RulerPrompt> prompts(int64_t length) const {
        PythonRandom random(request_.seed);
        const SizeSearch search(request_, length, request_.n_new, step_of_documents);
        const auto draw_of = [&](const Question& question) {
            return [&](int64_t size) { return draw_prompt(random, question, static_cast<size_t>(size)); };
        };
        const auto draw_first = draw_of(file_.questions.at(0));
        const int64_t size = search.greatest_fitting(search.upper_bound(draw_first), draw_first);
        std::vector<RulerPrompt> all;
        for (int64_t i = 0; i < request_.n_samples; ++i)
            all.push_back(search.draw_fitting(size, draw_of(file_.questions[static_cast<size_t>(i)])));
        return all;
    }

 private:
    /// @returns nullopt if the question's own documents are more than `n`
    std::optional<std::vector<size_t>> draw_documents(PythonRandom& random, const Question& question, size_t n) const {
        const auto& [text, answers, own, more] = question;
        std::vector<size_t> all;
        if (n >= file_.documents.size()) {
            for (size_t i = 0; i < n; ++i) all.push_back(i % file_.documents.size());
            return all;
        }
        all = own;
        if (n > own.size() + more.size()) {
            all.insert(all.end(), more.begin(), more.end());
            const std::set<size_t> used(all.begin(), all.end());
            std::vector<size_t> others;
            for (size_t i = 0; i < file_.documents.size(); ++i)
                if (!used.contains(i)) others.push_back(i);
            const auto chosen = random.sample(others.size(), n - own.size() - more.size());
            if (!chosen) return std::nullopt;
            for (const size_t i : *chosen) all.push_back(others[i]);
            return all;
        }
        if (n < own.size()) return std::nullopt;
        const auto chosen = random.sample(more.size(), n - own.size());
        for (const size_t i : *chosen) all.push_back(more[i]);
        return all;
    }

    std::optional<RulerPrompt> draw_prompt(PythonRandom& random, const Question& question, size_t n) const {
        auto documents = draw_documents(random, question, n);
        if (!documents) return std::nullopt;
        PythonRandom(request_.seed).shuffle(*documents);
        RulerPrompt prompt{.context = fmt::format("{}{}", instruction, documents_follow),
                           .question = fmt::format("{}Question: {} Answer:", instruction, question.text),
                           .answers = question.answers};
        for (size_t i = 0; i < documents->size(); ++i) {
            const size_t number = (*documents)[i];
            prompt.context += fmt::format("Document {}:\n", i + 1);
            const size_t begin = prompt.context.size();
            prompt.context += file_.documents[number];
            if (std::ranges::find(question.documents, number) != question.documents.end()) {
                for (const std::string& answer : question.answers) {
                    const size_t at = prompt.context.find(answer, begin);
                    if (at != std::string::npos) prompt.spans.emplace_back(at, at + answer.size());
                }
            }
            prompt.context += "\n\n";
        }
        return prompt;
    }

    const SubsetRequest& request_;
    QuestionsOfFile file_;
};

MakePrompts document_prompts(const SubsetRequest& request, QuestionsOfFile file) {
    const auto maker = std::make_shared<DocumentMaker>(request, std::move(file));
    return [maker](int64_t length) { return maker->prompts(length); };
}

}  // namespace

MakePrompts document_prompts_squad(const SubsetRequest& request) {
    return document_prompts(request,
                            read_questions(request, "squad", read_squad, "SQuAD 2.0's JSON, an object with \"data\""));
}

MakePrompts document_prompts_hotpot(const SubsetRequest& request) {
    return document_prompts(request, read_questions(request, "hotpotqa", read_hotpotqa,
                                                    "HotpotQA's JSON, a list of objects with \"question\", \"answer\" "
                                                    "and \"context\""));
}

}  // namespace kvscope::engine::ruler
