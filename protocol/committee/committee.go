// Package committee has the rules of committees: a host locks pay for a number of rounds; owners of data lock a stake
// as members. In each round the host publishes a model, and commits to a set of examples that it publishes once the
// round has its models; the beacon draws members by their stake, which train the model and enter the results, and
// evaluators, which seal and open its losses. The gain of an entry is the median, over the evaluators, of the loss of
// the model of the round less that of the entry (arena.Losses). The pay of the round is shared in proportion to the
// median of the last scores of each member; a score is the gain in millionths of the largest of the round.
//
// A round is a contest of protocol/arena without places. The package stores nothing, moves no coins and evaluates no
// model.
package committee

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/arena"
)

// Limits of a committee.
const (
	MaxRounds  = 10_000
	MaxDrawn   = 32    // members that a round has
	MaxWindow  = 15    // rounds of a median
	MaxMembers = 1_000 // of a committee
	Waiting    = 5_000 // blocks that a host has to begin the next round

	minStake = 1_000_000 // uzen
)

// Errors of the rules.
var (
	ErrTerms  = errors.New("committee: not the terms of a committee")
	ErrParty  = errors.New("committee: the account is not this party of the committee")
	ErrPhase  = errors.New("committee: the committee is in another phase")
	ErrStake  = errors.New("committee: not the stake of a member")
	ErrMember = errors.New("committee: the account is no member, or there are too many")
	ErrBusy   = errors.New("committee: the member is drawn for the round")
)

// Terms are the conditions of a committee.
type Terms struct {
	Rounds  uint32 `cbor:"1,keyasint"`
	Pay     uint64 `cbor:"2,keyasint"` // grains that the members of a round share
	Drawn   uint32 `cbor:"3,keyasint"` // members of a round, at most
	Stake   uint64 `cbor:"4,keyasint"` // uzen of a member, at least
	Window  uint32 `cbor:"5,keyasint"` // rounds of a member whose median counts
	Members uint32 `cbor:"6,keyasint"` // at most

	// Round has the terms of each round: title, coin, bond, fee, panel, limits of the set and of models, blocks of the
	// phases, tokenizer, and the URL where the job is. The set, the base, the prize and the places are not used.
	Round arena.Terms  `cbor:"7,keyasint"`
	Job   canon.Digest `cbor:"8,keyasint"` // digest of the job by which members train
}

// Validate checks terms by themselves.
func (t Terms) Validate() error {
	reject := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrTerms, fmt.Sprintf(format, args...))
	}
	r := t.Round
	switch {
	case t.Rounds == 0 || t.Rounds > MaxRounds:
		return reject("%d rounds, wanted 1 to %d", t.Rounds, MaxRounds)
	case t.Pay == 0 || max(t.Pay, r.Fee, r.Bond) >= arena.MaxAmount/MaxRounds:
		return reject("a pay of %d, a fee of %d and a bond of %d grains, wanted 1 and 0 to %d", t.Pay, r.Fee, r.Bond,
			uint64(arena.MaxAmount/MaxRounds))
	case t.Drawn == 0 || t.Drawn > MaxDrawn || t.Members < t.Drawn || t.Members > MaxMembers:
		return reject("%d of %d members, wanted 1 to %d and at most %d", t.Drawn, t.Members, MaxDrawn, MaxMembers)
	case t.Stake < minStake || t.Stake >= arena.MaxAmount:
		return reject("a stake of %d uzen, wanted %d or more", t.Stake, uint64(minStake))
	case t.Window == 0 || t.Window > MaxWindow || t.Window%2 == 0:
		return reject("a window of %d rounds, wanted an odd number of 1 to %d", t.Window, MaxWindow)
	case r.About == "" || t.Job.IsZero():
		return reject("no job, or no URL where it is")
	case r.Prize > 0 || r.Deposit > 0 || !r.Set.IsZero() || !r.Base.IsZero() || r.Places > 0 || r.Worst > 0 ||
		r.Curve != arena.Linear || r.Most > 0:
		return reject("a prize, a deposit, a set, a base or places, which rounds have of themselves")
	}
	if err := t.round(canon.Sum("set"), canon.Sum("base"), "http://base", t.Drawn).Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	return nil
}

// round are the terms of one round, as of a contest. A contest has a prize and places; a round does not use them.
func (t Terms) round(set, base canon.Digest, url string, entries uint32) arena.Terms {
	r := t.Round
	r.Prize, r.Places, r.Most = t.Pay, 1, entries
	r.Set, r.Base, r.BaseURL = set, base, url
	return r
}

// cost is what a round costs at most.
func (t Terms) cost() uint64 { return t.Pay + uint64(t.Round.Panel)*t.Round.Fee }

// Phase of a committee.
type Phase string

// Phases.
const (
	Idle    Phase = "idle"    // the host has to begin the next round
	Drawing Phase = "drawing" // the round has a model, and no members yet
	Round   Phase = "round"   // a round is under way
	Over    Phase = "over"
)

// Reason why a committee is over.
type Reason string

// Reasons.
const (
	Done    Reason = "it had all its rounds"
	Stopped Reason = "the host began no further round"
	Hidden  Reason = "the host hid the set of a round, or its model"
)

// Committee is a committee on a network.
type Committee struct {
	ID    uint64 `cbor:"1,keyasint"`
	Host  string `cbor:"2,keyasint"`
	Terms Terms  `cbor:"3,keyasint"`
	Phase Phase  `cbor:"4,keyasint"`
	Until int64  `cbor:"5,keyasint"` // last block of Idle and of Drawing

	Begun   uint32 `cbor:"6,keyasint,omitempty"`  // rounds that began, with that under way
	Scored  uint32 `cbor:"7,keyasint,omitempty"`  // rounds that have scores
	Contest uint64 `cbor:"8,keyasint,omitempty"`  // the latest round
	Left    uint64 `cbor:"9,keyasint,omitempty"`  // grains that the network holds of the host, with the bond
	Members uint32 `cbor:"10,keyasint,omitempty"` // accounts
	Staked  uint64 `cbor:"11,keyasint,omitempty"` // uzen of all members
	Why     Reason `cbor:"12,keyasint,omitempty"` // that it is over

	Model canon.Digest `cbor:"13,keyasint,omitzero"` // of the latest round
	URL   string       `cbor:"14,keyasint,omitempty"`
	Set   canon.Digest `cbor:"15,keyasint,omitzero"` // root of its set
}

// Open reports whether rounds may follow.
func (c Committee) Open() bool { return c.Phase != Over && c.Phase != "" }

// Convene begins a committee at a height. The network locks Left.
func Convene(id uint64, host string, t Terms, height int64) (Committee, error) {
	if err := t.Validate(); err != nil {
		return Committee{}, err
	}
	return Committee{ID: id, Host: host, Terms: t, Phase: Idle, Until: height + Waiting,
		Left: uint64(t.Rounds)*t.cost() + t.Round.Bond}, nil
}

// Begin begins a round with a model and the root of a set. Members are drawn by the beacon of a later block.
func (c Committee) Begin(sender string, model canon.Digest, url string, set canon.Digest, height int64) (Committee,
	error) {
	switch {
	case sender != c.Host:
		return c, fmt.Errorf("%w: %s is the host of %d", ErrParty, c.Host, c.ID)
	case c.Phase != Idle || height > c.Until:
		return c, fmt.Errorf("%w: %s", ErrPhase, c.Phase)
	case model.IsZero() || set.IsZero() || url == "" || !arena.URL(url):
		return c, fmt.Errorf("%w: the model, its URL or the set of the round is missing", ErrTerms)
	}
	c.Model, c.URL, c.Set = model, url, set
	c.Phase, c.Until = Drawing, height
	return c, nil
}

// Member is an owner of data that is a member of a committee.
type Member struct {
	Committee uint64   `cbor:"1,keyasint"`
	Account   string   `cbor:"2,keyasint"`
	Stake     uint64   `cbor:"3,keyasint"`           // uzen
	Ready     bool     `cbor:"4,keyasint"`           // may be drawn
	Drawn     uint32   `cbor:"5,keyasint,omitempty"` // rounds for which it was drawn, and which are over
	Paid      uint64   `cbor:"6,keyasint,omitempty"` // grains, in all rounds
	Scores    []uint64 `cbor:"7,keyasint,omitempty"` // of its last rounds that have scores, the latest last
	Away      bool     `cbor:"8,keyasint,omitempty"` // it left: the record of an account, without a stake
}

// Join makes an account a member, or ready again, with more uzen in its stake. An account that left and comes back has
// its record.
func (c Committee) Join(m Member, account string, more uint64) (Committee, Member, error) {
	switch {
	case !c.Open():
		return c, m, fmt.Errorf("%w: %s", ErrPhase, c.Phase)
	case account == c.Host:
		return c, m, fmt.Errorf("%w: the host knows the sets of the rounds", ErrParty)
	case more >= arena.MaxAmount || m.Stake+more < c.Terms.Stake || m.Stake+more >= arena.MaxAmount:
		return c, m, fmt.Errorf("%w: of %d uzen, wanted %d or more, and less than 2^53", ErrStake, m.Stake+more,
			c.Terms.Stake)
	case (m.Account == "" || m.Away) && c.Members >= c.Terms.Members:
		return c, m, fmt.Errorf("%w: it has %d", ErrMember, c.Members)
	case m.Account == "" || m.Away:
		m.Committee, m.Account, m.Away = c.ID, account, false
		c.Members++
	}
	m.Stake += more
	m.Ready = true
	c.Staked += more
	return c, m, nil
}

// Leave takes a member out of a committee, with its stake. invited are those of the round under way. While rounds may
// follow, the record of a member that was drawn for one stays, and is Away: there are at most as many records as
// outcomes of rounds.
func (c Committee) Leave(m Member, invited []string) (_ Committee, record Member, stake uint64, _ error) {
	switch {
	case m.Account == "" || m.Away:
		return c, record, 0, fmt.Errorf("%w of committee %d", ErrMember, c.ID)
	case c.Phase == Round && slices.Contains(invited, m.Account):
		return c, record, 0, ErrBusy
	}
	c.Members--
	c.Staked -= m.Stake
	if c.Open() && m.Drawn > 0 {
		record = m
		record.Stake, record.Ready, record.Away = 0, false, true
	}
	return c, record, m.Stake, nil
}
