#include "engine/tasks/longbench/sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/tasks/longbench/python_text.h"
#include "engine/tasks/longbench/scorers.h"
#include "policies/registry/name_matching.h"

namespace kvscope::engine::longbench {
namespace {

double score_qa_f1(std::string_view prediction, std::string_view answer, const ScoreInputs&) {
    return qa_f1(prediction, answer);
}
double score_qa_f1_zh(std::string_view prediction, std::string_view answer, const ScoreInputs& inputs) {
    return qa_f1_zh(prediction, answer, *inputs.cuts);
}
double score_rouge(std::string_view prediction, std::string_view answer, const ScoreInputs&) {
    return rouge_l(prediction, answer);
}
double score_rouge_zh(std::string_view prediction, std::string_view answer, const ScoreInputs& inputs) {
    return rouge_l_zh(prediction, answer, *inputs.cuts);
}
double score_classification(std::string_view prediction, std::string_view answer, const ScoreInputs& inputs) {
    return classification(prediction, answer, inputs.classes);
}
double score_retrieval(std::string_view prediction, std::string_view answer, const ScoreInputs&) {
    return retrieval(prediction, answer, "Paragraph ");
}
double score_retrieval_zh(std::string_view prediction, std::string_view answer, const ScoreInputs&) {
    return retrieval(prediction, answer, "段落");
}
double score_count(std::string_view prediction, std::string_view answer, const ScoreInputs&) {
    return count(prediction, answer);
}
double score_code_sim(std::string_view prediction, std::string_view answer, const ScoreInputs&) {
    return code_similarity(prediction, answer);
}

// The prompts contain the originals' errors of spelling and spacing.
constexpr Set all_sets[] = {
    {"narrativeqa", PromptStyle::chat, 128, "qa_f1_score", score_qa_f1,
     "You are given a story, which can be either a novel or a movie script, and a question. Answer "
     "the question asconcisely as you can, using a single phrase if possible. Do not provide any "
     "explanation.\n\n"
     "Story: {context}\n\n"
     "Now, answer the question based on the story asconcisely as you can, using a single phrase if "
     "possible. Do not provide any explanation.\n\n"
     "Question: {input}\n\n"
     "Answer:"},
    {"qasper", PromptStyle::chat, 128, "qa_f1_score", score_qa_f1,
     "You are given a scientific article and a question. Answer the question as concisely as you "
     "can, using a single phrase or sentence if possible. If the question cannot be answered based "
     "on the information in the article, write \"unanswerable\". If the question is a yes/no question, "
     "answer \"yes\", \"no\", or \"unanswerable\". Do not provide any explanation.\n\n"
     "Article: {context}\n\n"
     " Answer the question based on the above article as concisely as you can, using a single phrase "
     "or sentence if possible. If the question cannot be answered based on the information in the "
     "article, write \"unanswerable\". If the question is a yes/no question, answer \"yes\", \"no\", or "
     "\"unanswerable\". Do not provide any explanation.\n\n"
     "Question: {input}\n\n"
     "Answer:"},
    {"multifieldqa_en", PromptStyle::chat, 64, "qa_f1_score", score_qa_f1,
     "Read the following text and answer briefly.\n\n"
     "{context}\n\n"
     "Now, answer the following question based on the above text, only give me the answer and do not "
     "output any other words.\n\n"
     "Question: {input}\n"
     "Answer:"},
    {"multifieldqa_zh", PromptStyle::chat, 64, "qa_f1_zh_score", score_qa_f1_zh,
     "阅读以下文字并用中文简短回答：\n\n"
     "{context}\n\n"
     "现在请基于上面的文章回答下面的问题，只告诉我答案，不要输出任何其他字词。\n\n"
     "问题：{input}\n"
     "回答："},
    {"hotpotqa", PromptStyle::chat, 32, "qa_f1_score", score_qa_f1,
     "Answer the question based on the given passages. Only give me the answer and do not output any "
     "other words.\n\n"
     "The following are given passages.\n"
     "{context}\n\n"
     "Answer the question based on the given passages. Only give me the answer and do not output any "
     "other words.\n\n"
     "Question: {input}\n"
     "Answer:"},
    {"2wikimqa", PromptStyle::chat, 32, "qa_f1_score", score_qa_f1,
     "Answer the question based on the given passages. Only give me the answer and do not output any "
     "other words.\n\n"
     "The following are given passages.\n"
     "{context}\n\n"
     "Answer the question based on the given passages. Only give me the answer and do not output any "
     "other words.\n\n"
     "Question: {input}\n"
     "Answer:"},
    {"musique", PromptStyle::chat, 32, "qa_f1_score", score_qa_f1,
     "Answer the question based on the given passages. Only give me the answer and do not output any "
     "other words.\n\n"
     "The following are given passages.\n"
     "{context}\n\n"
     "Answer the question based on the given passages. Only give me the answer and do not output any "
     "other words.\n\n"
     "Question: {input}\n"
     "Answer:"},
    {"dureader", PromptStyle::chat, 128, "rouge_zh_score", score_rouge_zh,
     "请基于给定的文章回答下述问题。\n\n"
     "文章：{context}\n\n"
     "请基于上述文章回答下面的问题。\n\n"
     "问题：{input}\n"
     "回答："},
    {"gov_report", PromptStyle::chat, 512, "rouge_score", score_rouge,
     "You are given a report by a government agency. Write a one-page summary of the report.\n\n"
     "Report:\n"
     "{context}\n\n"
     "Now, write a one-page summary of the report.\n\n"
     "Summary:"},
    {"qmsum", PromptStyle::chat, 512, "rouge_score", score_rouge,
     "You are given a meeting transcript and a query containing a question or instruction. Answer "
     "the query in one or more sentences.\n\n"
     "Transcript:\n"
     "{context}\n\n"
     "Now, answer the query based on the above meeting transcript in one or more sentences.\n\n"
     "Query: {input}\n"
     "Answer:"},
    {"multi_news", PromptStyle::chat, 512, "rouge_score", score_rouge,
     "You are given several news passages. Write a one-page summary of all news. \n\n"
     "News:\n"
     "{context}\n\n"
     "Now, write a one-page summary of all the news.\n\n"
     "Summary:"},
    {"vcsum", PromptStyle::chat, 512, "rouge_zh_score", score_rouge_zh,
     "下面有一段会议记录，请你阅读后，写一段总结，总结会议的内容。\n"
     "会议记录：\n"
     "{context}\n\n"
     "会议总结："},
    {"trec", PromptStyle::examples, 64, "classification_score", score_classification,
     "Please determine the type of the question below. Here are some examples of questions.\n\n"
     "{context}\n"
     "{input}"},
    {"triviaqa", PromptStyle::examples, 32, "qa_f1_score", score_qa_f1,
     "Answer the question based on the given passage. Only give me the answer and do not output any "
     "other words. The following are some examples.\n\n"
     "{context}\n\n"
     "{input}"},
    {"samsum", PromptStyle::examples, 128, "rouge_score", score_rouge,
     "Summarize the dialogue into a few short sentences. The following are some examples.\n\n"
     "{context}\n\n"
     "{input}"},
    {"lsht", PromptStyle::examples, 64, "classification_score", score_classification,
     "请判断给定新闻的类别，下面是一些例子。\n\n"
     "{context}\n"
     "{input}"},
    {"passage_count", PromptStyle::chat, 32, "count_score", score_count,
     "There are some paragraphs below sourced from Wikipedia. Some of them may be duplicates. Please "
     "carefully read these paragraphs and determine how many unique paragraphs there are after "
     "removing duplicates. In other words, how many non-repeating paragraphs are there in total?\n\n"
     "{context}\n\n"
     "Please enter the final count of unique paragraphs after removing duplicates. The output format "
     "should only contain the number, such as 1, 2, 3, and so on.\n\n"
     "The final answer is: "},
    {"passage_retrieval_en", PromptStyle::chat, 32, "retrieval_score", score_retrieval,
     "Here are 30 paragraphs from Wikipedia, along with an abstract. Please determine which "
     "paragraph the abstract is from.\n\n"
     "{context}\n\n"
     "The following is an abstract.\n\n"
     "{input}\n\n"
     "Please enter the number of the paragraph that the abstract is from. The answer format must be "
     "like \"Paragraph 1\", \"Paragraph 2\", etc.\n\n"
     "The answer is: "},
    {"passage_retrieval_zh", PromptStyle::chat, 32, "retrieval_zh_score", score_retrieval_zh,
     "以下是若干段落文字，以及其中一个段落的摘要。请确定给定的摘要出自哪一段。\n\n"
     "{context}\n\n"
     "下面是一个摘要\n\n"
     "{input}\n\n"
     "请输入摘要所属段落的编号。答案格式必须是\"段落1\"，\"段落2\"等格式\n\n"
     "答案是："},
    {"lcc", PromptStyle::code, 64, "code_sim_score", score_code_sim,
     "Please complete the code given below. \n"
     "{context}Next line of code:\n"},
    {"repobench-p", PromptStyle::code, 64, "code_sim_score", score_code_sim,
     "Please complete the code given below. \n"
     "{context}{input}Next line of code:\n"},
};

}  // namespace

Scorer Set::scorer(ScoreInputs inputs) const {
    const bool as_kvpress = inputs.scored_as == ScoredAs::kvpress;
    return {std::string(metric),
            [this, as_kvpress, inputs = std::move(inputs)](std::string_view prediction,
                                                           std::span<const std::string> answers) {
                if (style == PromptStyle::examples)
                    prediction = first_line(as_kvpress ? without_leading_space(prediction) : prediction);
                double best = 0;
                for (const std::string& answer : answers) best = std::max(best, score(prediction, answer, inputs));
                return best;
            },
            as_kvpress ? "longbench as in kvpress" : "longbench"};
}

std::span<const Set> sets() { return all_sets; }

const Set& set_named(std::string_view name, const std::string& place) {
    std::vector<std::string> names;
    for (const Set& set : sets()) {
        if (set.name == name) return set;
        names.emplace_back(set.name);
    }
    throw UsageError(fmt::format("{}: expected a set of LongBench, found '{}'.{} Sets: {}", place, name,
                                 policies::did_you_mean(name, names), policies::joined(names)));
}

}  // namespace kvscope::engine::longbench
