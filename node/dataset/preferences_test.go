package dataset

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job/problem"
)

// A pair is one row: each answer after its prompt, cut off at its end or filled up. Pairs of which both texts are equal
// then are left out.
func TestPreferences(t *testing.T) {
	const reward = "task=reward"
	files := map[string]string{"a.jsonl": `{"prompt": "ab", "chosen": "c", "rejected": "dx"}
{"prompt": "abcdef", "chosen": "g", "rejected": "h"}
{"prompt": "", "chosen": "uvwxyz!", "rejected": "z"}
`}
	p, err := PreferencesOf(textJob(t, files, reward, "val_set_size=0"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i := 0; i < p.Corpus.Train.Len(); i += 12 {
		row := ""
		for k := range 12 {
			row += string(rune(p.Corpus.Train.At(i + k)))
		}
		rows = append(rows, strings.ReplaceAll(row, string(rune(p.Pad)), "_"))
	}
	slices.Sort(rows)
	if want := []string{"abc___abdx__", "uvwxyzz_____"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	_, tokens, err := corpusOf(textJob(t, files, reward))
	if err != nil || tokens != 12 {
		t.Errorf("%d tokens, %v", tokens, err)
	}
	for text, want := range map[string]string{
		`{"prompt": "abcdef", "chosen": "g", "rejected": "h"}`: "none differs in the first 6 tokens",
		`{"prompt": "a", "chosen": "g"}`:                       `"rejected"`,
		`{"prompt": "a", "chosen": "g", "rejected": "g"}`:      "both answers are the same",
		`{"prompt": 1, "chosen": "g", "rejected": "h"}`:        "neither two texts nor two lists",
	} {
		_, err := PreferencesOf(textJob(t, map[string]string{"a.jsonl": text + "\n"}, reward))
		if list := (*problem.ErrorList)(nil); !errors.As(err, &list) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
