// Package release gives the keys of the encrypted shards of a job to the members that execute units which read them,
// and records each release (docs/adr/0204-keys-of-shards-are-released-by-their-consumer.md). It is the side of the
// consumer; node/release/keyring is that of a member.
//
// Which unit a member executes is for protocol/run/readers, and how keys are encrypted for node/release/envelope.
package release

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	p2p "github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/message"
	"github.com/starling-network/starling/node/release/envelope"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/readers"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Server answers questions about keys on a host, for the jobs that are open there.
type Server struct {
	mu   sync.Mutex
	jobs map[string]*Job
}

// NewServer makes a server answer the questions that a host gets.
func NewServer(h *peer.Host) *Server {
	s := &Server{jobs: map[string]*Job{}}
	h.Answer(message.Keys, s.answer)
	return s
}

// Open answers questions about a job from now on, until it is closed. An open job of that name is replaced.
func (s *Server) Open(j *Job) (closes func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := j.ID
	s.jobs[id] = j
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.jobs[id] == j {
			delete(s.jobs, id)
		}
	}
}

// answer answers a question; nil: it is none, or no such job is open.
func (s *Server) answer(ctx context.Context, from p2p.ID, body []byte) []byte {
	q, err := ParseQuestion(body)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	j := s.jobs[q.Job]
	s.mu.Unlock()
	if j == nil {
		return nil
	}
	sealed, err := j.release(ctx, from.String(), q)
	if refused, ok := errors.AsType[Refusal](err); ok {
		return canon.MustMarshal(Answer{Refused: refused})
	}
	if err != nil {
		return canon.MustMarshal(Answer{Refused: NotYet})
	}
	return canon.MustMarshal(Answer{Envelope: sealed})
}

// Release is one line of the record: keys that a member has got for an attempt at a unit.
type Release struct {
	Time    time.Time       `json:"time"`
	Round   uint32          `json:"round"` // from 1
	Unit    uint32          `json:"unit"`
	Attempt uint32          `json:"attempt"`
	For     readers.Purpose `json:"for"`
	Member  string          `json:"member"`
	Peer    string          `json:"peer"`
	Shards  []int           `json:"shards"`
}

// Accounts are the registered accounts of a network.
type Accounts interface {
	Participant(ctx context.Context, id string) (registry.Participant, error)
}

// Job is a job whose shards are encrypted. Its methods may be called concurrently.
type Job struct {
	ID       string
	Secret   envelope.Secret
	Manifest data.Manifest
	Spec     *train.Spec
	Run      func(ctx context.Context) (run.State, error) // the state of the run now
	Accounts Accounts
	// a member gets keys only while its machine is attested with a measurement that the job lists
	Attested bool
	Listed   terms.Attested
	Record   func(Release) error

	mu       sync.Mutex
	state    run.State
	read     time.Time                       // when state was read; zero: it was not
	accounts map[string]registry.Participant // read since then
	shards   map[readers.Reading][]int       // shards that a unit reads, in the order in which it reads them
	given    map[reader]map[int]bool         // shards whose release is in the record
	proofs   map[string]proof                // by member; of members that have not been active since
}

// proof is a unit that a member has got the keys of for its probation.
type proof struct {
	unit     work.UnitID
	deadline int64 // height by which the task of the probation was due
}

// reader is a member that executes a unit.
type reader struct {
	readers.Reading
	member string
}

// A state of the run is read again when it is older than stale. If it has no unit for a question, it is read again when
// it is older than young, since a unit may have been assigned a moment ago.
const (
	stale = time.Second
	young = 200 * time.Millisecond
)

// follow reads the state of the run, unless it was read within a time.
func (j *Job) follow(ctx context.Context, within time.Duration) error {
	now := time.Now()
	if !j.read.IsZero() && now.Sub(j.read) < within {
		return nil
	}
	s, err := j.Run(ctx)
	if err != nil {
		return err
	}
	j.state, j.read, j.accounts = s, now, map[string]registry.Participant{}
	old := func(round uint32) bool { return round+1 < s.Oldest() }
	maps.DeleteFunc(j.shards, func(r readers.Reading, _ []int) bool { return old(r.Round) })
	maps.DeleteFunc(j.given, func(r reader, _ map[int]bool) bool { return old(r.Round) })
	return nil
}

// release returns the envelope that answers a question: a Refusal, or another error, which says that the consumer
// cannot answer now.
func (j *Job) release(ctx context.Context, from string, q Question) ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := error(NoUnit)
	for _, within := range []time.Duration{stale, young} {
		if err := j.follow(ctx, within); err != nil {
			return nil, err
		}
		var sealed []byte
		if sealed, err = j.answer(ctx, from, q); !errors.Is(err, NoUnit) {
			return sealed, err
		}
		if _, known := j.state.Member(q.Member); !known {
			break // strangers cost no query of their own
		}
	}
	return nil, err
}

// answer is release, judged by the state that was read last.
func (j *Job) answer(ctx context.Context, from string, q Question) ([]byte, error) {
	if err := j.trusts(ctx, from, q.Member); err != nil {
		return nil, err
	}
	if j.state.IsActive(q.Member) {
		delete(j.proofs, q.Member)
	}
	why := NoUnit
	for _, r := range readers.Of(&j.state.Progress, q.Member) {
		list, err := j.reads(r)
		if err != nil {
			return nil, err
		}
		at := slices.Index(list, int(q.Shard))
		if at < 0 {
			continue
		}
		if r.For == readers.Proves && !j.mayProve(q.Member) {
			why = TooSoon
			continue
		}
		// those that the unit reads after it, and then those before
		list = slices.Concat(list[at:], list[:at])
		list = list[:min(len(list), envelope.MaxKeys)]
		keys := envelope.Keys{}
		for _, i := range list {
			keys[i] = j.Secret.Key(i, j.Manifest.Shards[i])
		}
		sealed, err := envelope.Enclose(q.Public, j.ID, q.Member, list, keys)
		if err == nil {
			err = j.record(reader{r, q.Member}, from, list)
		}
		return sealed, err
	}
	return nil, why
}

// mayProve reports whether a member gets the keys of the unit of its probation. After the keys of one unit it gets
// those of another only if the deadline of the first is past, or if it has been active since. Otherwise it would see
// another unit each time that it leaves and joins, and compute none.
func (j *Job) mayProve(member string) bool {
	t, _ := j.state.Probation(member)
	before, known := j.proofs[member]
	if known && before.unit == t.Task.ID() {
		return true
	}
	if known && t.Asked < before.deadline {
		return false
	}
	if j.proofs == nil {
		j.proofs = map[string]proof{}
	}
	j.proofs[member] = proof{t.Task.ID(), t.Deadline}
	return true
}

// trusts reports as a Refusal why an account, or the peer that asks for it, gets no key.
func (j *Job) trusts(ctx context.Context, from, member string) error {
	if _, known := j.state.Member(member); !known {
		return NoUnit // strangers cost no query
	}
	p, known := j.accounts[member]
	if !known {
		var err error
		if p, err = j.Accounts.Participant(ctx, member); err != nil {
			return err
		}
		j.accounts[member] = p
	}
	switch {
	case p.PeerID != from:
		return OtherPeer
	case p.Stake == 0 || p.Earning || p.Jailed:
		return NoStake
	case j.Attested && !(p.Attested() && j.Listed.Lists(p.Quote.Measurement)):
		return NotAttested
	}
	return nil
}

// reads is Shards of the job. It computes the list of a unit once.
func (j *Job) reads(r readers.Reading) ([]int, error) {
	key := r
	key.Attempt, key.For = 0, ""
	if list, ok := j.shards[key]; ok {
		return list, nil
	}
	list, err := Shards(j.Manifest, j.Spec, r)
	if err != nil {
		return nil, err
	}
	if j.shards == nil {
		j.shards = map[readers.Reading][]int{}
	}
	j.shards[key] = list
	return list, nil
}

// Shards lists the shards that a unit reads, in the order in which it reads them.
func Shards(m data.Manifest, spec *train.Spec, r readers.Reading) ([]int, error) {
	s := spec.Of(r.Unit)
	steps := s.StepsOf(r.Unit)
	if r.Segment > 0 {
		steps = s.StepsTo(r.Unit, r.Segment)
	}
	batches := make([][]data.TokenRange, steps)
	for i := range batches {
		a := s.Address(r.Round, r.Unit, uint32(i))
		var err error
		if batches[i], err = m.Spans(a, int(s.Length), 0, int(a.Batch)*int(s.Length+1)); err != nil {
			return nil, err
		}
	}
	x, err := data.NewBatches(m, batches)
	if err != nil {
		return nil, err
	}
	return x.Shards(), nil
}

// record writes down the shards that are released for a unit for the first time.
func (j *Job) record(r reader, from string, list []int) error {
	var fresh []int
	for _, i := range list {
		if !j.given[r][i] {
			fresh = append(fresh, i)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	slices.Sort(fresh)
	if err := j.Record(Release{Time: j.read.UTC(), Round: r.Round + 1, Unit: r.Unit, Attempt: r.Attempt, For: r.For,
		Member: r.member, Peer: from, Shards: fresh}); err != nil {
		return err
	}
	if j.given == nil {
		j.given = map[reader]map[int]bool{}
	}
	if j.given[r] == nil {
		j.given[r] = map[int]bool{}
	}
	for _, i := range fresh {
		j.given[r][i] = true
	}
	return nil
}
