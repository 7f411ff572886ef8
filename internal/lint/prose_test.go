package lint

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unclear are turns of phrase that leave the reader to find what they are about: a relative clause without the word
// that it is about, a person that does not exist, a figure of speech.
var unclear = []*regexp.Regexp{
	regexp.MustCompile(`(?:^|[.:;!?|] |\*\*)(?:Who|Whoever|What|Whatever|Whose) [^.?!:|]*[.!:|]`), // no question
	regexp.MustCompile(`\b(?:of|to|by|for|from|with|on|at|than|and|or|says|knows|tells|beside) who\b`),
	regexp.MustCompile(`\b(?:of|to|by|from|with|than|beside) what\b`),
	regexp.MustCompile(`(?i)\b(?:nobody|somebody|whoever|anew|in vain|beside|is told|are told)\b`),
	regexp.MustCompile(`(?i)\b(?:comes? to|came to|go(?:es)? on|went on|hand(?:s|ed)? (?:it |them )?on|of so many)\b`),
}

// pageName is the file name of a page: a name stays as it is when the rule for sentences changes.
var pageName = regexp.MustCompile(`[\w./-]+\.md\b`)

func countUnclear(text string) (n int) {
	text = strings.Join(strings.Fields(pageName.ReplaceAllString(text, "PAGE")), " ")
	for _, r := range unclear {
		n += len(r.FindAllString(text, -1))
	}
	return n
}

// prose counts the unclear turns of phrase of a folder: in its comments, in the texts that its code prints, and in its
// pages. docs/cli.md is made of those texts, and docs/glossary.md names words that are not to be used.
func prose(all []source) map[string]int {
	out := map[string]int{}
	for _, s := range all {
		if s.generated() {
			continue
		}
		for _, c := range s.file.Comments {
			out[s.dir()] += countUnclear(c.Text())
		}
		if s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil {
					out[s.dir()] += countUnclear(text)
				}
			}
			return true
		})
	}
	err := walk(".md", func(name string, text []byte) error {
		if name != "docs/cli.md" && name != "docs/glossary.md" {
			out[path.Dir(name)] += countUnclear(string(text))
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return out
}

func TestUnclearPhrasesAreCounted(t *testing.T) {
	for text, want := range map[string]int{
		"Who signs is paid.": 1, "Who signs?": 0, "It ends. What is left is paid.": 1, "the account of who signs": 1,
		"The worker that signs is paid.": 0, "Nobody is told anew.": 3, "What it does: nothing. It goes on": 2,
		"[ADR 76](adr/0076-a-report-costs-nobody-anything.md) (docs/adr/0040-queries-beside-consensus.md)": 0,
		"Nobody reads README.md": 1,
	} {
		if n := countUnclear(text); n != want {
			t.Errorf("%q: %d, want %d", text, n, want)
		}
	}
}
