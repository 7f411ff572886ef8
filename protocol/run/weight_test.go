package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// heads is the weight of all members of a run.
func heads(s State) uint64 {
	_, all := s.Weighs(nil)
	return all
}

// staked is a run that waits for attestations, of members with a stake.
func staked(t *testing.T, members ...crew.Member) *stage {
	t.Helper()
	g := begin(t, newTerms(), members)
	g.toAudits()
	g.passAll()
	g.phase(progress.Attest)
	return g
}

func (g *stage) vote(member, cid string) {
	g.t.Helper()
	g.must(func(s State) (State, []event.Event, error) {
		v := vote(s, member)
		v.Next.CID = cid
		return s.Attest(g.env(), s.Round, v)
	})
}

func TestManyAccountsWithoutStakeAttestNothing(t *testing.T) {
	g := staked(t, crew.Member{ID: "a", Role: crew.Worker, Stake: 1}, crew.Member{ID: "b", Role: crew.Worker, Stake: 1},
		crew.Member{ID: "c", Role: crew.Worker, Stake: 1},
		crew.Member{ID: "d", Role: crew.Worker, Stake: 1}, crew.Member{ID: "v", Role: crew.Verifier, Stake: 9})
	for _, id := range []string{"a", "b", "c", "d"} {
		g.vote(id, "bafyforged")
	}
	g.phase(progress.Attest)
	g.vote("v", "bafyright")
	if g.s.Round != 1 || g.s.Base.CID != "bafyright" {
		t.Errorf("four accounts with 4 of 13 uzen outvote 9: round %d on %s", g.s.Round, g.s.Base.CID)
	}
}

func TestSeatsOfOneOwnerVoteOnce(t *testing.T) {
	g := staked(t, crew.Member{ID: "a", Role: crew.Worker, Stake: 5, Owner: "o"},
		crew.Member{ID: "b", Role: crew.Worker, Stake: 5, Owner: "o"},
		crew.Member{ID: "c", Role: crew.Worker, Stake: 5, Owner: "o"}, crew.Member{ID: "v", Role: crew.Verifier, Stake: 5})
	if heads(g.s) != 10 {
		t.Errorf("two owners with 5 uzen each weigh %d", heads(g.s))
	}
	for _, id := range []string{"a", "b", "c"} {
		g.vote(id, "bafyforged")
	}
	g.phase(progress.Attest)
}

func TestAccountsOfOneOwnerTakeNoUnitAway(t *testing.T) {
	g := staked(t, crew.Member{ID: "a", Role: crew.Worker, Stake: 5, Owner: "o"},
		crew.Member{ID: "b", Role: crew.Worker, Stake: 5, Owner: "o"},
		crew.Member{ID: "c", Role: crew.Worker, Stake: 6}, crew.Member{ID: "v", Role: crew.Verifier, Stake: 6})
	for i, u := range g.s.Units {
		if u.Worker == "c" {
			for _, id := range []string{"a", "b"} {
				g.must(func(s State) (State, []event.Event, error) {
					return s.Missing(g.env(), id, work.UnitID{Unit: uint32(i), Attempt: u.Attempt}, 0)
				})
			}
			if g.s.Units[i].Worker != "c" {
				t.Errorf("two accounts of one owner take a unit from another")
			}
			return
		}
	}
	t.Fatal("c has no unit")
}

// With three members, two are not more than two thirds. The third, which votes for another checkpoint, must not end
// the run.
func TestOneFalseVoteEndsNoRun(t *testing.T) {
	g := staked(t, newMembers(2, 1)...)
	g.vote("w0", "bafyright")
	g.vote("w1", "bafyforged")
	g.phase(progress.Attest)
	g.vote("v0", "bafyright")
	if m, _ := g.s.Member("w1"); g.s.Round != 1 || g.s.Base.CID != "bafyright" || m.Active {
		t.Errorf("round %d on %s, phase %s (%s); the outvoted: %+v", g.s.Round, g.s.Base.CID, g.s.Phase, g.s.Why, m)
	}
}

// If members of equal weight sign two checkpoints, the run waits for members to join. Then the beacon draws one of the
// two, and the signer of the other leaves.
func TestATieIsDrawnAfterAWait(t *testing.T) {
	drawn := map[string]int{}
	for i := range 40 {
		g := staked(t, newMembers(1, 1)...)
		since, mine := g.s.Since, fmt.Sprint("bafyone", i)
		g.vote("w0", mine)
		g.vote("v0", fmt.Sprint("bafyother", i))
		for g.s.Round == 0 && g.s.Phase == progress.Attest && g.height < since+10_000 {
			g.tick(1)
		}
		if waited := g.height - since; g.s.Round != 1 || waited < transition.MaxMissedAlone*g.s.Terms.Deadlines.Attest {
			t.Fatalf("phase %s (%s) after %d blocks", g.s.Phase, g.s.Why, waited)
		}
		drawn[strings.TrimRight(g.s.Base.CID, "0123456789")]++
		one, _ := g.s.Member("w0")
		other, _ := g.s.Member("v0")
		if out := map[bool]crew.Member{true: other, false: one}[g.s.Base.CID == mine]; out.Active ||
			out.Why != reason.WrongAttest || one.Active == other.Active {
			t.Errorf("%s is attested: %+v, %+v", g.s.Base.CID, one, other)
		}
	}
	if drawn["bafyone"] < 8 || drawn["bafyother"] < 8 {
		t.Errorf("drawn: %v", drawn)
	}
}
