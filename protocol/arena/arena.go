// Package arena has the rules of contests of models: a host locks a prize, and commits to a hidden set of examples;
// models are entered by commitments; after the last entry the set and the models are revealed; evaluators that the
// beacon draws compute the exact losses of the models, compare the models by duels, and report the places; the prize
// is shared by places. Models that are copies of earlier entries have no place.
//
// The package stores nothing, moves no coins and evaluates no model. Functions take the height of the block, and the
// beacon. Its duel has the test by which two models are compared, its hidden the file of a hidden set, and its ladder
// the scores that a host may show during a contest.
package arena

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/starling-network/starling/canon"
)

// Limits of a contest.
const (
	MaxTitle    = 100 // bytes
	MaxURL      = 256 // bytes
	MaxEntries  = 64
	MaxPanel    = 15 // evaluators of a draw
	MinPanel    = 3
	MinExamples = 100
	MaxExamples = 100_000
	MaxVocab    = 1 << 20
	MaxLength   = 1 << 16 // tokens of an example
	MaxScores   = 1 << 28 // tokens of an example times those of the vocabulary: evaluators have several such arrays
	MaxBytes    = 1 << 34 // of a model: evaluators have several in memory, as float32
	MaxAmount   = 1 << 53 // grains
	MinBlocks   = 5       // of a phase
	MaxBlocks   = 5_000_000
	MaxReport   = 16 << 10 // bytes of a report
	MaxWorst    = 1000     // nats: above it the mean loss of no model is too large
	maxDraws    = 3        // panels, until the contest is void
	work        = 1 << 23  // MiB of models times tokens of examples that a block of Judging is enough for

	million = 1_000_000
)

// Errors of the rules.
var (
	ErrTerms     = errors.New("arena: not a contest")
	ErrParty     = errors.New("arena: the account is not this party of the contest")
	ErrPhase     = errors.New("arena: the contest is in another phase")
	ErrFull      = errors.New("arena: the contest has all its entries")
	ErrEntry     = errors.New("arena: not an entry")
	ErrTwice     = errors.New("arena: it is on the network already")
	ErrReport    = errors.New("arena: not a report")
	ErrSeal      = errors.New("arena: the report is not the one that was sealed")
	ErrEvaluator = errors.New("arena: the account is no evaluator")
	ErrBusy      = errors.New("arena: the evaluator is in a panel")
)

// Terms are the conditions of a contest.
type Terms struct {
	Title string `cbor:"1,keyasint"`
	Denom string `cbor:"2,keyasint"` // "": the network's own coin

	Prize   uint64 `cbor:"3,keyasint"` // grains
	Bond    uint64 `cbor:"4,keyasint"` // grains that the host loses if it does not reveal the set
	Deposit uint64 `cbor:"5,keyasint"` // grains that an entrant loses if its model is not revealed, invalid or a copy
	Fee     uint64 `cbor:"6,keyasint"` // grains of each evaluator whose report is that of the majority
	Panel   uint32 `cbor:"7,keyasint"` // evaluators, an odd number

	Set      canon.Digest `cbor:"8,keyasint"`  // root of the hidden set
	Examples uint32       `cbor:"9,keyasint"`  // of it
	Vocab    uint32       `cbor:"10,keyasint"` // its tokens are below
	Length   uint32       `cbor:"11,keyasint"` // tokens of its longest example
	MaxBytes uint64       `cbor:"12,keyasint"` // of a model
	Most     uint32       `cbor:"13,keyasint"` // entries

	Entering  uint32 `cbor:"14,keyasint"` // blocks in which models are entered
	Revealing uint32 `cbor:"15,keyasint"` // blocks in which the set and the models are revealed
	Judging   uint32 `cbor:"16,keyasint"` // blocks in which evaluators seal a report, and as many to open it

	Curve  Curve  `cbor:"17,keyasint"`
	Places uint32 `cbor:"18,keyasint"`           // entries that share the prize
	Width  uint32 `cbor:"19,keyasint,omitempty"` // of Softmax: loss by which a part falls to 1/e, in millionths of a nat
	// models with a larger mean loss have no place, in millionths of a nat; 0: none is too large
	Worst uint64 `cbor:"20,keyasint,omitempty"`

	// model that entries may be made from: only what differs from it is compared for copies; zero: none
	Base    canon.Digest `cbor:"21,keyasint,omitzero"`
	BaseURL string       `cbor:"22,keyasint,omitempty"`

	Tokenizer canon.Digest `cbor:"23,keyasint,omitzero"`  // SHA-256 of the tokenizer.json that made the tokens of the set
	About     string       `cbor:"24,keyasint,omitempty"` // URL at which entrants read about the contest

	Adjusted bool `cbor:"25,keyasint,omitempty"` // the adjusted loss counts, too (Lower); of rounds alone
}

// Validate checks terms by themselves.
func (t Terms) Validate() error {
	reject := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrTerms, fmt.Sprintf(format, args...))
	}
	switch {
	case t.Title == "" || !text(t.Title, MaxTitle):
		return reject("a title of %d bytes, wanted 1 to %d of printable UTF-8", len(t.Title), MaxTitle)
	case t.Prize == 0 || max(t.Prize, t.Bond, t.Deposit, t.Fee) >= MaxAmount:
		return reject("a prize of %d, a bond of %d, a deposit of %d and a fee of %d grains, wanted 1 and 0 to 2^53", t.Prize,
			t.Bond, t.Deposit, t.Fee)
	case t.Panel < MinPanel || t.Panel > MaxPanel || t.Panel%2 == 0:
		return reject("%d evaluators, wanted an odd number of %d to %d", t.Panel, MinPanel, MaxPanel)
	case t.Set.IsZero() || t.Examples < MinExamples || t.Examples > MaxExamples:
		return reject("a hidden set of %d examples, wanted %d to %d and its root", t.Examples, MinExamples, MaxExamples)
	case t.Vocab < 2 || t.Vocab > MaxVocab || t.Length < 2 || t.Length > MaxLength:
		return reject("%d tokens and examples of %d, wanted 2 to %d and 2 to %d", t.Vocab, t.Length, MaxVocab, MaxLength)
	case uint64(t.Vocab)*uint64(t.Length) > MaxScores:
		return reject("%d scores for an example, of %d tokens with a vocabulary of %d, wanted at most %d",
			uint64(t.Vocab)*uint64(t.Length), t.Length, t.Vocab, MaxScores)
	case t.MaxBytes == 0 || t.MaxBytes > MaxBytes || t.Most == 0 || t.Most > MaxEntries:
		return reject("%d entries of %d bytes, wanted 1 to %d of at most %d", t.Most, t.MaxBytes, MaxEntries,
			uint64(MaxBytes))
	case min(t.Entering, t.Revealing, t.Judging) < MinBlocks || max(t.Entering, t.Revealing, t.Judging) > MaxBlocks:
		return reject("phases of %d, %d and %d blocks, wanted %d to %d", t.Entering, t.Revealing, t.Judging, MinBlocks,
			MaxBlocks)
	case t.Tokenizer.IsZero() || !URL(t.About):
		return reject("no digest of a tokenizer, or a page at %q, wanted an URL of at most %d bytes", t.About, MaxURL)
	case t.effort() > uint64(t.Judging)*work:
		return reject("%d blocks for %d models of %d bytes and %d examples of %d tokens, wanted %d", t.Judging, t.Most,
			t.MaxBytes, t.Examples, t.Length, t.effort()/work+1)
	case t.Base.IsZero() != (t.BaseURL == "") || !URL(t.BaseURL):
		return reject("a base at %q, wanted its digest and an URL of at most %d bytes, or neither", t.BaseURL, MaxURL)
	}
	return t.shared()
}

// MaxVocab is how many tokens a model may have: twice those of the set, and 1,024 more, as vocabularies are padded.
// Without a limit, a model of a few megabytes would take the memory of all evaluators by its scores.
func (t Terms) MaxVocab() int { return 2*int(t.Vocab) + 1024 }

// effort is what an evaluator may have to compute, in MiB of models times tokens of examples.
func (t Terms) effort() uint64 {
	passes := uint64(1)
	if t.Adjusted {
		passes = 2
	}
	return (t.MaxBytes*uint64(t.Most)>>20 + 1) * uint64(t.Examples) * uint64(t.Length) * passes
}

// shared checks how the prize is shared.
func (t Terms) shared() error {
	switch {
	case t.Curve > Softmax:
		return fmt.Errorf("%w: a curve of number %d", ErrTerms, t.Curve)
	case t.Places == 0 || t.Places > MaxEntries || t.Curve == Winner && t.Places != 1:
		return fmt.Errorf("%w: %d places, wanted 1 to %d, and 1 where the winner takes all", ErrTerms, t.Places, MaxEntries)
	case t.Worst > MaxWorst*million:
		return fmt.Errorf("%w: a worst loss of %d millionths of a nat, wanted at most %d nats", ErrTerms, t.Worst, MaxWorst)
	case (t.Width > 0) != (t.Curve == Softmax):
		return fmt.Errorf("%w: a width of %d for the curve %s", ErrTerms, t.Width, t.Curve)
	}
	return nil
}

// text reports whether a text is UTF-8 without control characters and not too long.
func text(s string, most int) bool {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	return len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, control)
}

// URL reports whether a text can be the URL of a folder, or is empty.
func URL(s string) bool {
	return s == "" || text(s, MaxURL) && (strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://"))
}

// Phase of a contest.
type Phase string

// Phases of a contest. The first four are open.
const (
	Entering  Phase = "entering"  // models are entered
	Revealing Phase = "revealing" // the set and the models are revealed
	Sealing   Phase = "sealing"   // evaluators evaluate, and seal their reports
	Opening   Phase = "opening"   // evaluators open their reports, with duels by a seed that was drawn after the seals
	Paid      Phase = "paid"      // the prize is shared
	Void      Phase = "void"      // the prize went back to the host
)

// Reason why a contest is void.
type Reason string

// Reasons.
const (
	Empty     Reason = "no model was entered"
	Hidden    Reason = "the host did not reveal the hidden set"
	Alone     Reason = "too few evaluators could be drawn"
	Undecided Reason = "no majority of evaluators reported the same"
	Worthless Reason = "no model has a place"
)

// Contest is a contest on a network.
type Contest struct {
	ID      uint64 `cbor:"1,keyasint"`
	Host    string `cbor:"2,keyasint"`
	Terms   Terms  `cbor:"3,keyasint"`
	Phase   Phase  `cbor:"4,keyasint"`
	Until   int64  `cbor:"5,keyasint"` // last block of the phase
	Entries uint32 `cbor:"6,keyasint"`
	Shown   uint32 `cbor:"7,keyasint"`           // entries that were revealed
	SetURL  string `cbor:"8,keyasint,omitempty"` // folder with the hidden set; "": not revealed

	Draws uint32       `cbor:"9,keyasint,omitempty"`  // panels that were drawn
	Panel []string     `cbor:"10,keyasint,omitempty"` // the latest
	Spent []string     `cbor:"11,keyasint,omitempty"` // evaluators of earlier panels
	Seed  canon.Digest `cbor:"12,keyasint,omitzero"`  // of the duels: the beacon after the seals

	Why      Reason       `cbor:"13,keyasint,omitempty"` // of a void contest
	Report   canon.Digest `cbor:"14,keyasint,omitzero"`  // of the majority
	Payments []Payment    `cbor:"15,keyasint,omitempty"` // at the end
	// entries whose files some evaluators of each panel up to now got, and others did not
	Torn []uint32 `cbor:"16,keyasint,omitempty"`

	Committee uint64    `cbor:"17,keyasint,omitempty"` // that the contest is a round of; 0: it is no round
	Invited   []string  `cbor:"18,keyasint,omitempty"` // accounts that were drawn to enter a round
	Gains     []uint64  `cbor:"19,keyasint,omitempty"` // of the entries of a round that is over: Gains of round.go
	Outcomes  []Outcome `cbor:"20,keyasint,omitempty"` // of all that were invited, once the round is over
}

// Open reports whether the network holds coins of the contest.
func (c Contest) Open() bool { return c.Phase != Paid && c.Phase != Void && c.Phase != "" }

// locked are the grains that the host locks.
func (t Terms) locked() uint64 { return t.Prize + t.Bond + uint64(t.Panel)*t.Fee }

// Held are the grains that the network holds of the host and of entrants.
func (c Contest) Held() uint64 {
	if !c.Open() || c.Committee > 0 { // the coins of a round are those of its committee
		return 0
	}
	return c.Terms.locked() + uint64(c.Entries)*c.Terms.Deposit
}

// Payment is an amount that the network pays from the coins that it holds, in grains of the coin of the contest.
type Payment struct {
	To     string `cbor:"1,keyasint"` // "": the community pool
	Amount uint64 `cbor:"2,keyasint"`
	For    Use    `cbor:"3,keyasint"`
}

// Use says what a payment is for.
type Use string

// Uses of payments.
const (
	ForPrize   Use = "prize"
	ForFee     Use = "fee"
	ForDeposit Use = "deposit"
	ForBond    Use = "bond"
	ForRefund  Use = "refund"
)

// Create begins a contest of a host at a height. The network locks Held.
func Create(id uint64, host string, t Terms, height int64) (Contest, error) {
	if err := t.Validate(); err != nil {
		return Contest{}, err
	}
	if t.Adjusted {
		return Contest{}, fmt.Errorf("%w: adjusted losses are those of rounds", ErrTerms)
	}
	return Contest{ID: id, Host: host, Terms: t, Phase: Entering, Until: height + int64(t.Entering)}, nil
}

// Entry is a model that was entered.
type Entry struct {
	Contest    uint64       `cbor:"1,keyasint"`
	Number     uint32       `cbor:"2,keyasint"` // from 1, in the order of the commitments
	Account    string       `cbor:"3,keyasint"`
	Commitment canon.Digest `cbor:"4,keyasint"`
	Height     int64        `cbor:"5,keyasint"`
	Model      canon.Digest `cbor:"6,keyasint,omitzero"` // digest of its files; zero: not revealed
	URL        string       `cbor:"7,keyasint,omitempty"`
}

// Commitment of an account to a model. The account is in it, so that no other account can enter with it, and the salt
// hides models that others have.
func Commitment(contest uint64, account string, model, salt canon.Digest) canon.Digest {
	return canon.Hash("starling/arena-entry/1", struct {
		Contest uint64       `cbor:"1,keyasint"`
		Account string       `cbor:"2,keyasint"`
		Model   canon.Digest `cbor:"3,keyasint"`
		Salt    canon.Digest `cbor:"4,keyasint"`
	}{contest, account, model, salt})
}

// during refuses a message outside of a phase.
func (c Contest) during(p Phase, height int64) error {
	if c.Phase != p || height > c.Until {
		return fmt.Errorf("%w: %s until block %d", ErrPhase, c.Phase, c.Until)
	}
	return nil
}

// Enter enters a model by a commitment. The network locks the deposit. The phase ends once all entries are there.
func (c Contest) Enter(account string, commitment canon.Digest, height int64) (Contest, Entry, error) {
	switch err := c.during(Entering, height); {
	case err != nil:
		return c, Entry{}, err
	case account == c.Host:
		return c, Entry{}, fmt.Errorf("%w: the host knows the hidden set", ErrParty)
	case c.Committee > 0 && !slices.Contains(c.Invited, account):
		return c, Entry{}, fmt.Errorf("%w: %s is not drawn for the round", ErrParty, account)
	case commitment.IsZero():
		return c, Entry{}, fmt.Errorf("%w: the commitment is missing", ErrEntry)
	case c.Entries >= c.Terms.Most:
		return c, Entry{}, fmt.Errorf("%w: %d", ErrFull, c.Entries)
	}
	c.Entries++
	if c.Entries == c.Terms.Most {
		c.Until = height
	}
	return c, Entry{Contest: c.ID, Number: c.Entries, Account: account, Commitment: commitment, Height: height}, nil
}

// RevealSet publishes where the hidden set is. The network does not read it: evaluators do.
func (c Contest) RevealSet(sender, url string, height int64) (Contest, error) {
	switch err := c.during(Revealing, height); {
	case sender != c.Host:
		return c, fmt.Errorf("%w: %s hosts %d", ErrParty, c.Host, c.ID)
	case err != nil:
		return c, err
	case url == "" || !URL(url):
		return c, fmt.Errorf("%w: the URL of the hidden set, of %d bytes", ErrTerms, len(url))
	}
	c.SetURL = url
	return c.shown(height), nil
}

// RevealEntry publishes which model an entry is, and where its files are.
func (c Contest) RevealEntry(e Entry, sender string, model, salt canon.Digest, url string, height int64) (Contest,
	Entry, error) {
	switch err := c.during(Revealing, height); {
	case sender != e.Account:
		return c, e, fmt.Errorf("%w: %s entered %d", ErrParty, e.Account, e.Number)
	case err != nil:
		return c, e, err
	case url == "" || !URL(url):
		return c, e, fmt.Errorf("%w: an URL of %d bytes, wanted http:// or https:// and at most %d", ErrEntry, len(url),
			MaxURL)
	case model.IsZero() || Commitment(c.ID, e.Account, model, salt) != e.Commitment:
		return c, e, fmt.Errorf("%w: the model and the salt are not those of the commitment", ErrEntry)
	}
	if e.Model.IsZero() {
		c.Shown++
	}
	e.Model, e.URL = model, url
	return c.shown(height), e, nil
}

// shown ends the phase once everything is revealed.
func (c Contest) shown(height int64) Contest {
	if c.SetURL != "" && c.Shown == c.Entries {
		c.Until = height
	}
	return c
}
