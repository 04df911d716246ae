// A run that exists only in memory (a what-if) and is read like a run of a file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "trace/reader.h"
#include "trace/records/extents.h"
#include "trace/records/records.h"
#include "trace/records/schema.h"

namespace kvscope::trace {

class InMemoryRun {
 public:
    /// `model` and `prompt` must outlive the run. Throws std::invalid_argument if the writer would reject `record`.
    InMemoryRun(RunRecord record, const ModelAttributes& model, const PromptAttributes& prompt);
    InMemoryRun(const InMemoryRun&) = delete;
    InMemoryRun& operator=(const InMemoryRun&) = delete;

    [[nodiscard]] bool has(const schema::DataSet& data_set) const;

    // shape(), read() and kept() throw DamagedTrace if the run lacks the data set.

    [[nodiscard]] std::vector<std::size_t> shape(const schema::DataSet& data_set) const;
    /// Returns the data set or `block`, converted as in Reader::read(). Throws std::out_of_range for a block outside.
    template <class T>
    [[nodiscard]] std::vector<T> read(const schema::DataSet& data_set, const Block* block = nullptr) const;
    [[nodiscard]] std::shared_ptr<const Kept> kept() const;

    [[nodiscard]] RunRecord record() const;

 private:
    template <class Action>
    bool visit(const schema::DataSet& data_set, Action action) const;
    [[noreturn]] void missing(const schema::DataSet& data_set) const;

    std::string name_;  ///< the run's name in messages
    RunRecord record_;  ///< without kept entries, which are in kept_
    std::shared_ptr<const Kept> kept_;
    Extents extents_;
};

}  // namespace kvscope::trace
