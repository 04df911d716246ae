// A run that is in no file (a what-if), held in memory and read in the same ways as one in a file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "trace/extents.h"
#include "trace/reader.h"
#include "trace/records.h"
#include "trace/schema.h"

namespace kvscope::trace {

class AddedRun {
 public:
    /// `model` and `prompt` must outlive it. Throws std::invalid_argument where the writer would.
    AddedRun(RunRecord record, const ModelAttributes& model, const PromptAttributes& prompt);
    AddedRun(const AddedRun&) = delete;
    AddedRun& operator=(const AddedRun&) = delete;

    [[nodiscard]] bool has(const schema::DataSet& data_set) const;

    // These throw DamagedTrace where the data set is not there.

    [[nodiscard]] std::vector<std::size_t> shape(const schema::DataSet& data_set) const;
    /// Whole, or a block of it: std::out_of_range if that lies outside. T as in Reader::read().
    template <class T>
    [[nodiscard]] std::vector<T> read(const schema::DataSet& data_set, const Block* block = nullptr) const;
    [[nodiscard]] std::shared_ptr<const Kept> kept() const;

    [[nodiscard]] RunRecord record() const;

 private:
    /// Calls `action` with the vector of that data set; false if it is not there.
    template <class Action>
    bool visit(const schema::DataSet& data_set, Action action) const;
    [[noreturn]] void missing(const schema::DataSet& data_set) const;

    std::string name_;  // in messages
    RunRecord record_;  // without its kept entries: they are in kept_
    std::shared_ptr<const Kept> kept_;
    Extents extents_;
};

}  // namespace kvscope::trace
