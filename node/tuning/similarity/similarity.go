// Package similarity has the metrics of text_similarity graders as functions in Starlark. It computes none itself; a
// job's reward does.
package similarity

import "strings"

// Source has the functions in Starlark that metrics are computed with: the words of a text, as letters and digits of
// ASCII in lower case; the length of the longest common subsequence of two lists (Hunt and Szymanski 1977); and the
// share of runs of n words that two texts have in common (Lin 2004, "ROUGE").
const Source = `
def starling_words_of(text):
    out, word = [], []
    for c in text.lower().elems():
        if c.isalnum():
            word.append(c)
        elif word:
            out.append("".join(word))
            word = []
    if word:
        out.append("".join(word))
    return out

def starling_in_common(a, b):
    places, ends = {}, []
    for i in range(len(b)):
        places.setdefault(b[i], []).append(i)
    for x in a:
        for i in reversed(places.get(x, [])):
            low, high = 0, len(ends)
            for half in range(16):
                if low == high:
                    break
                middle = (low + high) // 2
                if ends[middle] < i:
                    low = middle + 1
                else:
                    high = middle
            if low == len(ends):
                ends.append(i)
            else:
                ends[low] = i
    return len(ends)

def starling_share_of(common, a, b):
    return 2.0 * common / (a + b) if a + b else 0.0

def starling_sequence(a, b):
    return starling_share_of(starling_in_common(a, b), len(a), len(b))

def starling_runs_in_common(a, b, n):
    a = [" ".join(a[i:i + n]) for i in range(len(a) - n + 1)]
    b = [" ".join(b[i:i + n]) for i in range(len(b) - n + 1)]
    rest, common = list(b), 0
    for x in a:
        if x in rest:
            rest.remove(x)
            common += 1
    return starling_share_of(common, len(a), len(b))
`

// Of is a metric of text_similarity as an expression of the texts a and b, in the functions of Source; false if the
// metric is none of fuzzy_match, rouge_1 to rouge_5 and rouge_l.
func Of(name string) (value string, known bool) {
	switch name {
	case "fuzzy_match":
		return "starling_sequence(list(a.elems()), list(b.elems()))", true
	case "rouge_l":
		return "starling_sequence(starling_words_of(a), starling_words_of(b))", true
	}
	if n, ok := strings.CutPrefix(name, "rouge_"); ok && len(n) == 1 && n >= "1" && n <= "5" {
		return "starling_runs_in_common(starling_words_of(a), starling_words_of(b), " + n + ")", true
	}
	return "", false
}
