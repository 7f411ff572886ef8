package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

func TestNewRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*terms.Terms){
		"job":            func(t *terms.Terms) { t.Job = "" },
		"long job":       func(t *terms.Terms) { t.Job = strings.Repeat("j", terms.MaxID+1) },
		"spec":           func(t *terms.Terms) { t.Spec = canon.Digest{} },
		"spec cid":       func(t *terms.Terms) { t.SpecCID = strings.Repeat("c", terms.MaxCID+1) },
		"genesis":        func(t *terms.Terms) { t.Genesis.Root = canon.Digest{} },
		"genesis round":  func(t *terms.Terms) { t.Genesis.Round = 1 },
		"no rounds":      func(t *terms.Terms) { t.Rounds = 0 },
		"many rounds":    func(t *terms.Terms) { t.Rounds = terms.MaxRounds + 1 },
		"no units":       func(t *terms.Terms) { t.Units = 0 },
		"many units":     func(t *terms.Terms) { t.Units = terms.MaxUnits + 1 },
		"segments":       func(t *terms.Terms) { t.Segments = terms.MaxSegments + 1 },
		"no work":        func(t *terms.Terms) { t.UnitFlops = 0 },
		"audit rate":     func(t *terms.Terms) { t.AuditPPM = 1_000_001 },
		"deadline":       func(t *terms.Terms) { t.Deadlines.Audit = 0 },
		"large deadline": func(t *terms.Terms) { t.Deadlines.Train = terms.MaxBlocks + 1 },
		"no window":      func(t *terms.Terms) { t.Window = 0 },
		"large window":   func(t *terms.Terms) { t.Window = terms.MaxWindow + 1 },
		"open units":     func(t *terms.Terms) { t.Units, t.Window = terms.MaxUnits, terms.MaxOpen/terms.MaxUnits+1 },
		"challenges":     func(t *terms.Terms) { t.Deadlines.Challenge = -1 },
	} {
		bad := newTerms()
		spoil(&bad)
		if _, err := New(bad, newMembers(2, 1), 1); !errors.Is(err, refusal.ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, members := range map[string][]crew.Member{
		"nobody":    nil,
		"no worker": newMembers(0, 2),
		"twice":     append(newMembers(1, 0), newMembers(1, 0)...),
		"no role":   {{ID: "x"}},
		"no name":   {{Role: crew.Worker}},
		"too many":  newMembers(terms.MaxMembers, 1),
	} {
		if _, err := New(newTerms(), members, 1); !errors.Is(err, refusal.ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHonestRun(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 2))
	for round := range g.s.Terms.Rounds {
		if g.s.Round != round || g.s.Base.Round != round {
			t.Fatalf("round %d on base %d, want %d", g.s.Round, g.s.Base.Round, round)
		}
		g.phase(progress.Assign)
		g.tick(1)
		g.phase(progress.Train)
		g.commitAll()
		g.phase(progress.Attest)
		g.tick(1) // the block of the last commitment draws nothing
		if g.s.Drawn {
			t.Fatal("drawn under a beacon that the last worker to commit may have known")
		}
		g.tick(1)
		if len(g.s.Audits("v0"))+len(g.s.Audits("v1")) != int(g.s.Terms.Units)*int(round+1) {
			t.Fatal("not every unit of a job with full audits is audited")
		}
		g.attestAll()
	}
	g.phase(progress.Settle)
	if g.count(event.RoundAttested) != 2 || g.count(event.RoundFinal) != 0 {
		t.Fatalf("%d rounds attested and %d final before any audit is answered", g.count(event.RoundAttested),
			g.count(event.RoundFinal))
	}
	g.passAll()
	g.tick(1)
	g.phase(progress.Settle) // a challenge may still come
	g.tick(1)
	g.phase(progress.Done)
	if g.count(event.RoundFinal) != 2 || g.count(event.RunDone) != 1 || g.count(event.MemberLeft) != 0 ||
		g.count(event.UnitReassigned) != 0 ||
		g.count(event.UnitAccepted) != 8 {
		t.Errorf("events: %+v", g.events)
	}
	for _, e := range g.events {
		if e.Kind == event.RoundAttested && (len(e.Entry.Workers) != 4 || len(e.Entry.Votes) != 4 ||
			len(e.Entry.Attestation.Updates) != 4) {
			t.Errorf("entry: %+v", e.Entry)
		}
	}
	if err := g.do(func(s State) (State, []event.Event, error) { return s.Attest(g.env(), 2, vote(s, "w0")) }); !errors.Is(
		err,
		refusal.ErrHalted,
	) {
		t.Errorf("a message after the end: %v", err)
	}
	var back State
	if err := canon.Unmarshal(canon.MustMarshal(g.s), &back); err != nil || canon.Hash("s", back) != canon.Hash("s", g.s) {
		t.Errorf("the state does not survive encoding: %v", err)
	}
}

// A run waits when the window is full, and continues when its oldest round is final.
func TestWindow(t *testing.T) {
	long := newTerms()
	long.Rounds = 5
	g := begin(t, long, newMembers(3, 2))
	g.round()
	g.round()
	g.tick(8)
	g.phase(progress.Assign)
	for _, v := range []string{"v0", "v1"} {
		for _, a := range g.s.Audits(v) {
			if a.Round == 1 {
				g.pass(v, 1, a.Index)
			}
		}
	}
	g.tick(1)
	g.phase(progress.Assign) // round 0 is not final
	g.passAll()
	g.tick(1)
	g.phase(progress.Train)
	if g.count(event.RoundFinal) != 2 || len(g.s.Open) != 0 || g.s.Oldest() != 2 {
		t.Errorf("%d rounds are final, %d open", g.count(event.RoundFinal), len(g.s.Open))
	}
	var back State
	if err := canon.Unmarshal(canon.MustMarshal(g.s), &back); err != nil || canon.Hash("s", back) != canon.Hash("s", g.s) {
		t.Errorf("the state does not survive encoding: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 2))
	refused := func(name string, want error, f func(State) (State, []event.Event, error)) {
		t.Helper()
		if err := g.do(f); !errors.Is(err, want) || codeOf(err) != codeOf(want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	commit := func(from string, id work.UnitID, spoil func(*work.Commitment)) func(State) (State, []event.Event, error) {
		return func(s State) (State, []event.Event, error) {
			c := commitment(s.RoundState, id.Unit)
			if spoil != nil {
				spoil(&c)
			}
			return s.Commit(g.env(), from, id, c)
		}
	}
	refused("before the deal", refusal.ErrWrongPhase, commit("w0", work.UnitID{}, nil))
	g.tick(1)
	owner := g.s.Units[0].Worker
	other := g.s.Units[1].Worker
	refused("stranger", refusal.ErrNotMember, commit("x", work.UnitID{}, nil))
	refused("round", refusal.ErrStale, commit(owner, work.UnitID{Round: 1}, nil))
	refused("attempt", refusal.ErrStale, commit(owner, work.UnitID{Attempt: 1}, nil))
	refused("unit", refusal.ErrNoUnit, commit(owner, work.UnitID{Unit: 4}, nil))
	refused("largest unit", refusal.ErrNoUnit, commit(owner, work.UnitID{Unit: 1<<32 - 1}, nil))
	refused("another's", refusal.ErrNotYours, commit(other, work.UnitID{}, nil))
	refused("segments", refusal.ErrBadCommitment,
		commit(owner, work.UnitID{}, func(c *work.Commitment) { c.Segments = c.Segments[1:] }))
	refused("update", refusal.ErrBadCommitment,
		commit(owner, work.UnitID{}, func(c *work.Commitment) { c.Update = canon.Digest{} }))
	refused("cid", refusal.ErrBadCommitment, commit(owner, work.UnitID{}, func(c *work.Commitment) { c.UpdateCID = "" }))
	refused("bytes", refusal.ErrBadCommitment, commit(owner, work.UnitID{}, func(c *work.Commitment) { c.Bytes = 0 }))
	g.commit(0)
	refused("again", refusal.ErrDuplicate, commit(owner, work.UnitID{}, nil))
	pass := func(from string, id work.UnitID) func(State) (State, []event.Event, error) {
		return func(s State) (State, []event.Event, error) {
			return s.Pass(g.env(), from, id, canon.Sum("seal"))
		}
	}
	challenge := func(from string, id work.UnitID) func(State) (State, []event.Event, error) {
		return func(s State) (State, []event.Event, error) { return s.Challenge(g.env(), from, id) }
	}
	missing := func(from string, id work.UnitID) func(State) (State, []event.Event, error) {
		return func(s State) (State, []event.Event, error) { return s.Missing(g.env(), from, id, 0) }
	}
	verdict := func(id work.UnitID, lies bool, loser string) func(State) (State, []event.Event, error) {
		return func(s State) (State, []event.Event, error) {
			return s.Verdict(g.env(), id, lies, false, loser)
		}
	}
	refused("pass in train", refusal.ErrWrongPhase, pass("v0", work.UnitID{}))
	refused("challenge in train", refusal.ErrWrongPhase, challenge("v0", work.UnitID{}))
	refused("missing in train", refusal.ErrWrongPhase, missing("v0", work.UnitID{}))
	refused("early vote", refusal.ErrWrongPhase,
		func(s State) (State, []event.Event, error) { return s.Attest(g.env(), 0, vote(s, "w0")) })
	g.commitAll()
	refused("challenge before the draw", refusal.ErrWrongPhase, challenge("v0", work.UnitID{}))
	g.tick(2)
	u := g.s.Units[0]
	stranger := "v0"
	if u.Verifier == "v0" {
		stranger = "v1"
	}
	refused("another's audit", refusal.ErrNotYours, pass(stranger, work.UnitID{}))
	refused("audit of a later attempt", refusal.ErrStale, pass(u.Verifier, work.UnitID{Attempt: 1}))
	refused("audit of a later round", refusal.ErrStale, pass(u.Verifier, work.UnitID{Round: 1}))
	refused("challenge of its own unit", refusal.ErrNotYours, challenge(u.Worker, work.UnitID{}))
	refused("challenge of a later attempt", refusal.ErrStale, challenge(stranger, work.UnitID{Attempt: 1}))
	refused("no dispute", refusal.ErrWrongPhase, verdict(work.UnitID{}, true, u.Worker))
	refused("verdict unit", refusal.ErrNoUnit, verdict(work.UnitID{Unit: 99}, true, u.Worker))
	refused("verdict round", refusal.ErrStale, verdict(work.UnitID{Round: 9}, true, u.Worker))
	refused("own missing", refusal.ErrNotYours, missing(u.Worker, work.UnitID{}))
	refused("missing of a later attempt", refusal.ErrStale, missing(stranger, work.UnitID{Attempt: 1}))
	g.challenge(u.Verifier, 0, 0)
	refused("second challenge", refusal.ErrDuplicate, challenge(u.Verifier, work.UnitID{}))
	refused("wrong loser", refusal.ErrNotYours, verdict(work.UnitID{}, true, u.Verifier))
	refused("verdict attempt", refusal.ErrStale, verdict(work.UnitID{Attempt: 1}, true, u.Worker))
	g.verdict(0, 0, false)
	refused("inactive", refusal.ErrInactive, pass(u.Verifier, work.UnitID{}))
	g.passAll()
	g.phase(progress.Attest)
	for name, spoil := range map[string]func(*progress.Vote){
		"round":     func(v *progress.Vote) { v.Next.Round = 5 },
		"root":      func(v *progress.Vote) { v.Next.Root = canon.Digest{} },
		"cid":       func(v *progress.Vote) { v.Next.CID = strings.Repeat("c", terms.MaxCID+1) },
		"key":       func(v *progress.Vote) { v.PublicKey = make([]byte, terms.MaxKey+1) },
		"signature": func(v *progress.Vote) { v.Signature = make([]byte, terms.MaxKey+1) },
	} {
		refused("vote "+name, refusal.ErrBadVote, func(s State) (State, []event.Event, error) {
			v := vote(s, "w0")
			spoil(&v)
			return s.Attest(g.env(), 0, v)
		})
	}
	g.must(func(s State) (State, []event.Event, error) { return s.Attest(g.env(), 0, vote(s, "w0")) })
	refused("second vote", refusal.ErrDuplicate,
		func(s State) (State, []event.Event, error) { return s.Attest(g.env(), 0, vote(s, "w0")) })
	for _, id := range []string{"w1", "w2"} {
		g.must(func(s State) (State, []event.Event, error) { return s.Attest(g.env(), 0, vote(s, id)) })
	}
	g.must(missing(stranger, work.UnitID{})) // it could not fetch the update of an open round
	if _, _, err := (func() State { s := g.s; s.Rules = progress.RatesCount; return s }()).Missing(g.env(), "w0",
		work.UnitID{Unit: 1}, 0); !errors.Is(err, refusal.ErrStale) {
		t.Errorf("missing when attested, by earlier rules: %v", err)
	}
	if codeOf(errors.New("x")) != "internal" {
		t.Error("an error of another package has a code of this one")
	}
}
