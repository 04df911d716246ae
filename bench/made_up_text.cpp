#include "made_up_text.h"

#include "random.h"

namespace kvscope::bench {

namespace {

using Words = std::vector<std::string>;

// Words include their spaces, as tokens do.
struct Kind {
    unsigned weight;
    Words words;
    Words ends;
};

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all = {
        {70,
         {" the",
          " of",
          " and",
          " a",
          " to",
          " in",
          " river",
          " lamp",
          " keeper",
          " winter",
          " letter",
          " harbour",
          " copper",
          " bridge",
          " morning",
          " seven",
          " was",
          " had",
          " carried",
          " found",
          " under",
          " between",
          " slow",
          " bright",
          " old",
          " garden",
          " clock",
          " paper",
          " measure",
          " orchard",
          " ship",
          " granite",
          " whisper",
          " number",
          " street",
          " window",
          " again",
          " never",
          " with",
          " from",
          " ing",
          "ed",
          "s",
          ",",
          " \u00e9t\u00e9",
          " na\u00efve",
          " stra\u00dfe",
          " sm\u00f8r",
          " 1947",
          " 3",
          ".5",
          " extraordinarily"},
         {".", ".", ".", "?", "!", ".\n"}},
        {8,
         {"\u6cb3", "\u6d41", "\u7684", "\u706f\u5854", "\u51ac\u5929", "\u4fe1", "\u6e2f\u53e3", "\u94dc", "\u6865",
          "\u65e9\u6668", "\u5728", "\u4e86", "\u6ca1\u6709", "\u82b1\u56ed", "\u949f", "\uff0c"},
         {"\u3002", "\uff1f"}},
        {5,
         {"\u6771\u4eac", "\u306e", "\u3092", "\u306f", "\u5ddd", "\u3067\u3059", "\u3042\u308b", "\u30e9\u30f3\u30d7",
          "\u624b\u7d19", "\u671d", "\u3001"},
         {"\u3002"}},
        {6,
         {" \u0627\u0644\u0646\u0647\u0631", " \u0641\u064a", " \u0645\u0646", " \u0627\u0644\u0634\u062a\u0627\u0621",
          " \u0631\u0633\u0627\u0644\u0629", " \u0627\u0644\u0645\u064a\u0646\u0627\u0621", " \u062c\u0633\u0631",
          " \u0648", "\u0627\u0644\u0635\u0628\u0627\u062d", " \u0643\u0627\u0646"},
         {".", "\u061f"}},
        {4,
         {" \u0928\u0926\u0940", " \u0915\u0947", " \u092e\u0947\u0902", " \u0938\u0930\u094d\u0926\u0940",
          " \u091a\u093f\u091f\u094d\u0920\u0940", " \u092a\u0941\u0932", " \u0938\u0941\u092c\u0939", " \u0925\u093e"},
         {"\u0964"}},
        {3,
         {" \U0001F600", " \U0001F30A", "\U0001F4A1", " \u2744\uFE0F", " \U0001F468\u200D\U0001F469\u200D\U0001F467",
          " \U0001F1EF\U0001F1F5", " wow", " so"},
         {"!", "\u2026"}},
        {4,
         {"    ", "\t", "for", " (", "int", " i", " =", " 0", ";", " <", " n", "++", ")", " {", "return", " x[", "]"},
         {"\n", "}\n"}},
    };
    return all;
}

}  // namespace

MadeUpText made_up_text(std::size_t n_tokens, std::uint64_t seed) {
    Random random(seed);
    unsigned weights = 0;
    for (const Kind& kind : kinds()) weights += kind.weight;
    MadeUpText out;
    const auto add = [&](const Words& words, std::int32_t first_id) {
        const std::size_t i = random.below(words.size());
        out.ids.push_back(first_id + static_cast<std::int32_t>(i));
        out.pieces.push_back(words[i]);
    };
    while (out.ids.size() < n_tokens) {
        std::size_t draw = random.below(weights);
        std::int32_t first_id = 0;
        const Kind* kind = kinds().data();
        for (; draw >= kind->weight; ++kind) {
            draw -= kind->weight;
            first_id += static_cast<std::int32_t>(kind->words.size() + kind->ends.size());
        }
        for (std::size_t left = 4 + random.below(20); left > 0; --left) add(kind->words, first_id);
        add(kind->ends, first_id + static_cast<std::int32_t>(kind->words.size()));
    }
    out.ids.resize(n_tokens);
    out.pieces.resize(n_tokens);
    return out;
}

int made_up_vocabulary_size() {
    std::size_t size = 0;
    for (const Kind& kind : kinds()) size += kind.words.size() + kind.ends.size();
    return static_cast<int>(size);
}

}  // namespace kvscope::bench
