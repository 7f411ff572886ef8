package run

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts under testdata")

// transcript is a run told as a story: what was done, and what followed from it, by height.
type transcript struct {
	*stage
	b     strings.Builder
	phase progress.Phase
}

// step prints the step, performs it, and lists the events.
func (x *transcript) step(what string, do func()) {
	first := len(x.events)
	fmt.Fprintf(&x.b, "\n# %s\n", what)
	do()
	for i, e := range x.events[first:] {
		fmt.Fprintf(&x.b, "%3d  %s\n", x.at[first+i], sentence(e))
	}
	if x.s.Phase != x.phase {
		x.phase = x.s.Phase
		fmt.Fprintf(&x.b, "     the run is in phase %s, round %d\n", x.phase, x.s.Round)
	}
}

func sentence(e event.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-15s round %d", e.Kind, e.Round)
	if e.Entry != nil {
		fmt.Fprintf(&b, ": checkpoint %d by %d votes", e.Entry.Attestation.Checkpoint.Round, len(e.Entry.Votes))
	} else if e.Who != "" && e.Kind != event.MemberLeft && e.Kind != event.MemberJoined {
		fmt.Fprintf(&b, " unit %d", e.Unit)
	}
	if e.Who != "" {
		fmt.Fprintf(&b, ": %s", e.Who)
	}
	if e.Other != "" {
		fmt.Fprintf(&b, ", %s", e.Other)
	}
	if e.Why != "" {
		fmt.Fprintf(&b, " (%s)", e.Why)
	}
	return b.String()
}

// Each transcript is a golden file: go test ./protocol/run -rewrite writes them again.
func TestTranscripts(t *testing.T) {
	for name, play := range map[string]func(x *transcript){
		"honest": func(x *transcript) {
			for range x.s.Terms.Rounds {
				x.step("a block deals the units of the round", func() { x.tick(1) })
				x.step("every worker commits", x.commitAll)
				x.step("the beacon draws the audits", func() { x.tick(2) })
				x.step("the members attest the next checkpoint", x.attestAll)
				x.step("the verifiers seal what they computed, and open it", x.passAll)
			}
			x.step("the challenge windows pass", func() { x.tick(8) })
		},
		"liar": func(x *transcript) {
			x.step("the units are dealt, committed, and their audits drawn", x.toAudits)
			x.step("the checkpoint is attested on top of the lie", x.attestAll)
			x.step("the next round begins", func() { x.tick(2) })
			x.step("the verifier of unit 1 finds another state", func() { x.challenge(x.unit(0, 1).Verifier, 0, 1) })
			x.step("the dispute ends against the worker: the run goes back to round 0", func() { x.verdict(0, 1, true) })
			x.step("another worker commits the unit", x.commitAll)
			x.step("its audit is drawn", func() { x.tick(2) })
		},
		"false-challenge": func(x *transcript) {
			x.step("the units are dealt, committed, and their audits drawn", x.toAudits)
			x.step("a verifier challenges right work", func() { x.challenge(x.unit(0, 1).Verifier, 0, 1) })
			x.step("the dispute ends against it: another verifier is drawn", func() { x.verdict(0, 1, false) })
		},
		"late": func(x *transcript) {
			x.step("the units are dealt", func() { x.tick(1) })
			x.step("all workers but that of unit 3 commit", func() {
				for i := range uint32(3) {
					x.commit(i)
				}
			})
			x.step("its deadline passes: another worker has the unit", func() { x.tick(11) })
			x.step("that one commits", x.commitAll)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := &transcript{stage: begin(t, newTerms(), newMembers(4, 2))}
			play(x)
			path := filepath.Join("testdata", name+".txt")
			got := strings.TrimPrefix(x.b.String(), "\n")
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
				t.Errorf("%s differs:\n%s", path, got)
			}
		})
	}
}
