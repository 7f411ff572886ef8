package dispute

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts under testdata")

// Each transcript is a whole dispute: the party and the height of every move, and the verdict. They are golden files,
// so that a change of the rules shows in them: go test ./protocol/dispute -rewrite writes them again.
func TestTranscripts(t *testing.T) {
	honest := truth([]uint32{20, 20}, 300, 20)
	honest.parts = 100
	lie := func(change func(f *fake)) fake {
		f := honest
		change(&f)
		return f
	}
	operator := lie(func(f *fake) { f.lie, f.op, f.part = 25, 123, 18 })
	for _, s := range []struct {
		name  string
		story string
		play  func(t *testing.T) Dispute
	}{
		{"operator", "A worker changed part 18 of the output of operator 123 in step 26, and the verifier finds it.",
			func(t *testing.T) Dispute { return settle(t, open(t, operator.config(), 2), operator, honest, honest) }},
		{"false-challenge", "A verifier that computes wrongly challenges the same part of an honest worker.",
			func(t *testing.T) Dispute { return settle(t, open(t, honest.config(), 2), honest, operator, honest) }},
		{"skipped-step", "A worker skipped step 26: its operators are right, the state after them is not.",
			func(t *testing.T) Dispute {
				liar := lie(func(f *fake) { f.lie, f.bind = 25, true })
				return settle(t, open(t, liar.config(), 2), liar, honest, honest)
			}},
		{"start", "A worker started from another checkpoint.",
			func(t *testing.T) Dispute {
				liar := lie(func(f *fake) { f.start = true })
				return settle(t, open(t, liar.config(), 0), liar, honest, honest)
			}},
		{"update", "A worker trained correctly and sent another update.",
			func(t *testing.T) Dispute {
				liar := lie(func(f *fake) { f.update, f.part = 7, 50 })
				return settle(t, open(t, liar.config(), 3), liar, honest, honest)
			}},
		{"bad-leaf", "A verifier brings a payload that proves nothing.",
			func(t *testing.T) Dispute {
				liar := lie(func(f *fake) { f.start = true })
				g := open(t, liar.config(), 0)
				g, err := g.Apply(101, verifier, Move{Leaf: &Leaf{Payload: []byte("nothing")}}, refuses{})
				if err != nil {
					t.Fatal(err)
				}
				return g
			}},
		{"silence", "The worker does not answer the challenge.",
			func(t *testing.T) Dispute { return open(t, operator.config(), 2).Tick(111) }},
		{"planted", "The worker shows that it planted the fault.",
			func(t *testing.T) Dispute { return open(t, operator.config(), 2).Void(104, true) }},
		{"moot", "The unit is trained again, so that nothing is left to decide.",
			func(t *testing.T) Dispute { return open(t, operator.config(), 2).Void(104, false) }},
	} {
		t.Run(s.name, func(t *testing.T) {
			golden(t, filepath.Join("testdata", s.name+".txt"), "# "+s.story+"\n"+transcript(s.play(t)))
		})
	}
}

// refuses is a referee that no payload satisfies.
type refuses struct{ fake }

func (refuses) Judge(Claim, []byte) (Ruling, error) { return Ruling{}, ErrWork }

func transcript(g Dispute) string {
	var b strings.Builder
	for _, r := range g.Log {
		fmt.Fprintf(&b, "%d %-8s %s\n", r.Height, r.Party, g.Text(r, nil))
	}
	if v := g.Verdict; v != nil {
		fmt.Fprintf(&b, "verdict: %s loses, %s, after %d moves and %d bytes of digests\n", g.Loser(), v.Reason, v.Moves,
			v.HashBytes)
	}
	return b.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs: go test ./protocol/dispute -rewrite shows how\n%s", path, got)
	}
}
