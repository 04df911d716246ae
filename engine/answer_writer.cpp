#include "engine/answer_writer.h"

#include <algorithm>
#include <utility>

#include "engine/decode/answer_attention.h"
#include "engine/device/catch_single_run_failure.h"

namespace kvscope::engine {
OnToken make_token_callback(std::span<ActiveRun* const> runs, const Experiment& owner) {
    if (!owner.on_token) return nullptr;
    return [runs, &owner](size_t i, int32_t id) { owner.on_token(runs[i]->index(), id); };
}

AskSwitch make_switch_callback(std::span<ActiveRun* const> runs, const Experiment& owner) {
    if (!owner.ask_switch) return nullptr;
    return [runs, &owner](size_t i, bool is_full) { return owner.ask_switch(runs[i]->index(), is_full); };
}

void AnswerWriter::decode(FullAnswer* known) {
    const bool has_full = !runs_.empty() && runs_[0]->is_full();
    if (!has_full) no_reference_ = "it failed before its answer";
    const size_t first = known && has_full ? 1 : 0;
    if (first == 1) adopt(*known);
    tools_.answering.decode(
        std::span(starts_).subspan(first), make_token_callback(std::span(runs_).subspan(first), tools_.owner),
        [&](std::span<const size_t> ended, std::span<const Generation> all, bool goes_on) {
            for (const size_t i : ended) {
                generations_[i + first] = all[i];
                waiting_.push_back(i + first);
                if (tools_.owner.on_answered) tools_.owner.on_answered(runs_[i + first]->index());
            }
            WithoutSteps within(tools_.progress);
            write_those_waiting(goes_on ? static_cast<Progress&>(within) : tools_.progress);
        },
        make_switch_callback(std::span(runs_).subspan(first), tools_.owner));
}

void AnswerWriter::adopt(FullAnswer& known) {
    const int run = runs_[0]->index();
    if (tools_.owner.on_token)
        for (const int32_t id : known.generation.ids) tools_.owner.on_token(run, id);
    if (tools_.owner.on_answered) tools_.owner.on_answered(run);
    generations_[0] = std::move(known.generation);
    no_reference_ = known.error;
    if (no_reference_.empty()) reference_ = std::move(known.reference);
    attention_ = std::move(known.attention);
    waiting_.push_back(0);
    write_those_waiting(tools_.progress);
}

void AnswerWriter::write_those_waiting(Progress& shown) {
    ScoreBuffer room;
    std::vector<Comparison> comparisons(runs_.size());
    std::erase_if(waiting_, [&](size_t i) {  // comparisons exclude failed runs
        if (i == 0 || generations_[i].error.empty()) return false;
        write(i, {}, room);
        return true;
    });
    if (tools_.options.compare) {
        if (!reference_ && no_reference_.empty()) read_reference(shown);
        if (!reference_ && no_reference_.empty()) return;
        if (reference_) compare(comparisons, shown);
    }
    for (const size_t i : waiting_) write(i, comparisons[i], room);
    waiting_.clear();
}

void AnswerWriter::read_reference(Progress& shown) {
    if (std::find(waiting_.begin(), waiting_.end(), size_t{0}) == waiting_.end()) return;
    no_reference_ = generations_[0].error;
    if (no_reference_.empty())
        no_reference_ = catch_single_run_failure([&] {
            reference_ = tools_.answering.reference(starts_[0], generations_[0], n_context_,
                                                    tools_.options.record ? &attention_ : nullptr, shown);
        });
}

void AnswerWriter::compare(std::vector<Comparison>& comparisons, Progress& shown) {
    std::vector<AnswerStart*> compared;
    std::vector<size_t> numbers;
    for (const size_t i : waiting_) {
        if (runs_[i]->is_full()) {
            comparisons[i] = comparison_of_full_with_itself(transformer(), *reference_);
        } else if (generations_[i].error.empty()) {
            compared.push_back(&starts_[i]);
            numbers.push_back(i);
        }
    }
    auto found = tools_.answering.compare(*reference_, compared, shown);
    if (tools_.options.record && !tools_.options.stores_only_measures()) {
        std::vector<const ActiveRun*> those;
        for (const size_t i : numbers) those.push_back(runs_[i]);
        tools_.answering.add_attention_lost(starts_[0].cache, *reference_, n_context_, those, found, shown);
    }
    for (size_t k = 0; k < numbers.size(); ++k) comparisons[numbers[k]] = std::move(found[k]);
}

void AnswerWriter::write(size_t i, const Comparison& comparison, ScoreBuffer& room) {
    auto record =
        make_run_record_with_answer(tools_.model, *runs_[i], generations_[i], room, tools_.progress.stop_token());
    if (tools_.options.compare && record.status != trace::schema::run::status_failed) {
        if (reference_)
            add_comparison(record, comparison);
        else if (runs_[i]->is_full())
            record_failure(record, "reading its answer back: " + no_reference_);
        else
            mark_as_not_compared(record);
    }
    if (tools_.options.record && tools_.options.compare) {
        if (!attention_.empty() && group_attention_.empty())
            group_attention_ = mean_over_groups(attention_, transformer().shape(), n_context_);
        add_answer_attention(record, group_attention_, transformer().shape(), n_context_, tools_.options);
    }
    const bool failed = record.status == trace::schema::run::status_failed;
    if (tools_.options.stores_only_measures()) omit_values_of_tokens(record);
    const int run = runs_[i]->index();
    if (!tools_.results.has_run(prompt_, run)) tools_.results.write(prompt_, run, record);
    answered_[static_cast<size_t>(run)] = {failed, std::move(record.output_text)};
    room.take_back(record);
}

}  // namespace kvscope::engine
