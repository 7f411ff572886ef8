package run

import (
	"errors"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
)

func TestNewRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Terms){
		"job":            func(t *Terms) { t.Job = "" },
		"long job":       func(t *Terms) { t.Job = strings.Repeat("j", MaxID+1) },
		"spec":           func(t *Terms) { t.Spec = canon.Digest{} },
		"spec cid":       func(t *Terms) { t.SpecCID = strings.Repeat("c", MaxCID+1) },
		"genesis":        func(t *Terms) { t.Genesis.Root = canon.Digest{} },
		"genesis round":  func(t *Terms) { t.Genesis.Round = 1 },
		"no rounds":      func(t *Terms) { t.Rounds = 0 },
		"many rounds":    func(t *Terms) { t.Rounds = MaxRounds + 1 },
		"no units":       func(t *Terms) { t.Units = 0 },
		"many units":     func(t *Terms) { t.Units = MaxUnits + 1 },
		"segments":       func(t *Terms) { t.Segments = MaxSegments + 1 },
		"no work":        func(t *Terms) { t.UnitFlops = 0 },
		"audit rate":     func(t *Terms) { t.AuditPPM = 1_000_001 },
		"deadline":       func(t *Terms) { t.Deadlines.Audit = 0 },
		"large deadline": func(t *Terms) { t.Deadlines.Train = MaxBlocks + 1 },
		"no window":      func(t *Terms) { t.Window = 0 },
		"large window":   func(t *Terms) { t.Window = MaxWindow + 1 },
		"open units":     func(t *Terms) { t.Units, t.Window = MaxUnits, MaxOpen/MaxUnits+1 },
		"challenges":     func(t *Terms) { t.Deadlines.Challenge = -1 },
	} {
		bad := newTerms()
		spoil(&bad)
		if _, err := New(bad, newMembers(2, 1), 1); !errors.Is(err, ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, members := range map[string][]Member{
		"nobody":    nil,
		"no worker": newMembers(0, 2),
		"twice":     append(newMembers(1, 0), newMembers(1, 0)...),
		"no role":   {{ID: "x"}},
		"no name":   {{Role: Worker}},
		"too many":  newMembers(MaxMembers, 1),
	} {
		if _, err := New(newTerms(), members, 1); !errors.Is(err, ErrTerms) {
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
		g.phase(Assign)
		g.tick(1)
		g.phase(Train)
		g.commitAll()
		g.phase(Attest)
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
	g.phase(Settle)
	if g.count(RoundAttested) != 2 || g.count(RoundFinal) != 0 {
		t.Fatalf("%d rounds attested and %d final before any audit is answered", g.count(RoundAttested), g.count(RoundFinal))
	}
	g.passAll()
	g.tick(1)
	g.phase(Settle) // a challenge may still come
	g.tick(1)
	g.phase(Done)
	if g.count(RoundFinal) != 2 || g.count(RunDone) != 1 || g.count(MemberLeft) != 0 || g.count(UnitReassigned) != 0 ||
		g.count(UnitAccepted) != 8 {
		t.Errorf("events: %+v", g.events)
	}
	for _, e := range g.events {
		if e.Kind == RoundAttested && (len(e.Entry.Workers) != 4 || len(e.Entry.Votes) != 4 ||
			len(e.Entry.Attestation.Updates) != 4) {
			t.Errorf("entry: %+v", e.Entry)
		}
	}
	if err := g.do(func(s State) (State, []Event, error) { return s.Attest(g.env(), 2, vote(s, "w0")) }); !errors.Is(err,
		ErrHalted) {
		t.Errorf("a message after the end: %v", err)
	}
	var back State
	if err := canon.Unmarshal(canon.MustMarshal(g.s), &back); err != nil || canon.Hash("s", back) != canon.Hash("s", g.s) {
		t.Errorf("the state does not survive encoding: %v", err)
	}
}

// A run waits when the window is full, and goes on when its oldest round is final.
func TestWindow(t *testing.T) {
	long := newTerms()
	long.Rounds = 5
	g := begin(t, long, newMembers(3, 2))
	g.round()
	g.round()
	g.tick(8)
	g.phase(Assign)
	for _, v := range []string{"v0", "v1"} {
		for _, a := range g.s.Audits(v) {
			if a.Round == 1 {
				g.pass(v, 1, a.Index)
			}
		}
	}
	g.tick(1)
	g.phase(Assign) // round 0 is not final
	g.passAll()
	g.tick(1)
	g.phase(Train)
	if g.count(RoundFinal) != 2 || len(g.s.Open) != 0 || g.s.Oldest() != 2 {
		t.Errorf("%d rounds are final, %d open", g.count(RoundFinal), len(g.s.Open))
	}
	var back State
	if err := canon.Unmarshal(canon.MustMarshal(g.s), &back); err != nil || canon.Hash("s", back) != canon.Hash("s", g.s) {
		t.Errorf("the state does not survive encoding: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 2))
	refused := func(name string, want error, f func(State) (State, []Event, error)) {
		t.Helper()
		if err := g.do(f); !errors.Is(err, want) || codeOf(err) != codeOf(want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	commit := func(from string, id UnitID, spoil func(*Commitment)) func(State) (State, []Event, error) {
		return func(s State) (State, []Event, error) {
			c := commitment(s.RoundState, id.Unit)
			if spoil != nil {
				spoil(&c)
			}
			return s.Commit(g.env(), from, id, c)
		}
	}
	refused("before the deal", ErrWrongPhase, commit("w0", UnitID{}, nil))
	g.tick(1)
	owner := g.s.Units[0].Worker
	other := g.s.Units[1].Worker
	refused("stranger", ErrNotMember, commit("x", UnitID{}, nil))
	refused("round", ErrStale, commit(owner, UnitID{Round: 1}, nil))
	refused("attempt", ErrStale, commit(owner, UnitID{Attempt: 1}, nil))
	refused("unit", ErrNoUnit, commit(owner, UnitID{Unit: 4}, nil))
	refused("largest unit", ErrNoUnit, commit(owner, UnitID{Unit: 1<<32 - 1}, nil))
	refused("another's", ErrNotYours, commit(other, UnitID{}, nil))
	refused("segments", ErrBadCommitment, commit(owner, UnitID{}, func(c *Commitment) { c.Segments = c.Segments[1:] }))
	refused("update", ErrBadCommitment, commit(owner, UnitID{}, func(c *Commitment) { c.Update = canon.Digest{} }))
	refused("cid", ErrBadCommitment, commit(owner, UnitID{}, func(c *Commitment) { c.UpdateCID = "" }))
	refused("bytes", ErrBadCommitment, commit(owner, UnitID{}, func(c *Commitment) { c.Bytes = 0 }))
	g.commit(0)
	refused("again", ErrDuplicate, commit(owner, UnitID{}, nil))
	pass := func(from string, id UnitID) func(State) (State, []Event, error) {
		return func(s State) (State, []Event, error) {
			return s.Pass(g.env(), from, id, canon.Sum("seal"))
		}
	}
	challenge := func(from string, id UnitID) func(State) (State, []Event, error) {
		return func(s State) (State, []Event, error) { return s.Challenge(g.env(), from, id) }
	}
	missing := func(from string, id UnitID) func(State) (State, []Event, error) {
		return func(s State) (State, []Event, error) { return s.Missing(g.env(), from, id, 0) }
	}
	verdict := func(id UnitID, lies bool, loser string) func(State) (State, []Event, error) {
		return func(s State) (State, []Event, error) {
			return s.Verdict(g.env(), id, lies, false, loser)
		}
	}
	refused("pass in train", ErrWrongPhase, pass("v0", UnitID{}))
	refused("challenge in train", ErrWrongPhase, challenge("v0", UnitID{}))
	refused("missing in train", ErrWrongPhase, missing("v0", UnitID{}))
	refused("early vote", ErrWrongPhase,
		func(s State) (State, []Event, error) { return s.Attest(g.env(), 0, vote(s, "w0")) })
	g.commitAll()
	refused("challenge before the draw", ErrWrongPhase, challenge("v0", UnitID{}))
	g.tick(2)
	u := g.s.Units[0]
	stranger := "v0"
	if u.Verifier == "v0" {
		stranger = "v1"
	}
	refused("another's audit", ErrNotYours, pass(stranger, UnitID{}))
	refused("audit of a later attempt", ErrStale, pass(u.Verifier, UnitID{Attempt: 1}))
	refused("audit of a later round", ErrStale, pass(u.Verifier, UnitID{Round: 1}))
	refused("challenge of its own unit", ErrNotYours, challenge(u.Worker, UnitID{}))
	refused("challenge of a later attempt", ErrStale, challenge(stranger, UnitID{Attempt: 1}))
	refused("no dispute", ErrWrongPhase, verdict(UnitID{}, true, u.Worker))
	refused("verdict unit", ErrNoUnit, verdict(UnitID{Unit: 99}, true, u.Worker))
	refused("verdict round", ErrStale, verdict(UnitID{Round: 9}, true, u.Worker))
	refused("own missing", ErrNotYours, missing(u.Worker, UnitID{}))
	refused("missing of a later attempt", ErrStale, missing(stranger, UnitID{Attempt: 1}))
	g.challenge(u.Verifier, 0, 0)
	refused("second challenge", ErrDuplicate, challenge(u.Verifier, UnitID{}))
	refused("wrong loser", ErrNotYours, verdict(UnitID{}, true, u.Verifier))
	refused("verdict attempt", ErrStale, verdict(UnitID{Attempt: 1}, true, u.Worker))
	g.verdict(0, 0, false)
	refused("inactive", ErrInactive, pass(u.Verifier, UnitID{}))
	g.passAll()
	g.phase(Attest)
	for name, spoil := range map[string]func(*Vote){
		"round":     func(v *Vote) { v.Next.Round = 5 },
		"root":      func(v *Vote) { v.Next.Root = canon.Digest{} },
		"cid":       func(v *Vote) { v.Next.CID = strings.Repeat("c", MaxCID+1) },
		"key":       func(v *Vote) { v.PublicKey = make([]byte, MaxKey+1) },
		"signature": func(v *Vote) { v.Signature = make([]byte, MaxKey+1) },
	} {
		refused("vote "+name, ErrBadVote, func(s State) (State, []Event, error) {
			v := vote(s, "w0")
			spoil(&v)
			return s.Attest(g.env(), 0, v)
		})
	}
	g.must(func(s State) (State, []Event, error) { return s.Attest(g.env(), 0, vote(s, "w0")) })
	refused("second vote", ErrDuplicate,
		func(s State) (State, []Event, error) { return s.Attest(g.env(), 0, vote(s, "w0")) })
	for _, id := range []string{"w1", "w2"} {
		g.must(func(s State) (State, []Event, error) { return s.Attest(g.env(), 0, vote(s, id)) })
	}
	refused("missing when attested", ErrStale, missing(stranger, UnitID{}))
	if codeOf(errors.New("x")) != "internal" {
		t.Error("an error of another package has a code of this one")
	}
}
