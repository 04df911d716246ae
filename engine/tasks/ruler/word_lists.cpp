#include "engine/tasks/ruler/word_lists.h"

#include <algorithm>

namespace kvscope::engine::ruler {
namespace {

void sort_and_make_unique(std::vector<std::string>& words) {
    std::ranges::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
}

/// Appends the lines of a file, without white space at their ends.
void append_lines(std::vector<std::string>& words, const Files& files, std::string_view name) {
    const std::string& text = files.at(std::string(name));
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        std::string line = text.substr(begin, end - begin);
        line.resize(line.find_last_not_of(" \t\r") + 1);
        words.push_back(std::move(line));
        begin = end + 1;
    }
}

}  // namespace

AdjectiveNouns::AdjectiveNouns(const Files& files) {
    append_lines(nouns_, files, noun_file);
    sort_and_make_unique(nouns_);
    std::vector<std::string> beginnings;
    append_lines(beginnings, files, adjective_file);
    for (std::string& adjective : beginnings) adjective += '-';
    sort_and_make_unique(beginnings);
    for (size_t i = 0; i < beginnings.size();) {
        Group group{.beginning = beginnings[i]};
        size_t next = i + 1;
        while (next < beginnings.size() && beginnings[next].starts_with(group.beginning)) ++next;
        if (next - i > 1) {
            for (; i < next; ++i)
                for (const std::string& noun : nouns_) group.words.push_back(beginnings[i] + noun);
            sort_and_make_unique(group.words);
        }
        group.end = size() + (group.words.empty() ? nouns_.size() : group.words.size());
        groups_.push_back(std::move(group));
        i = next;
    }
}

std::string AdjectiveNouns::at(size_t place) const {
    const auto group = std::ranges::upper_bound(groups_, place, {}, &Group::end);
    place -= group == groups_.begin() ? 0 : std::prev(group)->end;
    return group->words.empty() ? group->beginning + nouns_.at(place) : group->words.at(place);
}

std::vector<std::string> sorted_words(const Files& files) {
    std::vector<std::string> words;
    for (const std::string_view name : {noun_file, adjective_file, verb_file}) append_lines(words, files, name);
    sort_and_make_unique(words);
    return words;
}

}  // namespace kvscope::engine::ruler
