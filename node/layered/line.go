package layered

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/node/layered/left"
	"github.com/starling-network/starling/node/layered/wire"
)

// Conversation is a dialogue with the holder of a stage.
type Conversation interface {
	Ask(ctx context.Context, question []byte) ([]byte, error)
	Close()
}

// Config says where the stages of a model are.
type Config struct {
	Layout  section.Layout
	Weights canon.Digest // root of the model
	Peers   []string     // multiaddrs of the holders of stages, in the order in which they are asked
	// Dial opens a dialogue whose answers have at most a number of bytes.
	Dial     func(ctx context.Context, addr string, longest int) (Conversation, error)
	Timeout  time.Duration // for an answer
	Wait     time.Duration // for which a stage that no holder answers for is waited for
	CheckPPM uint32        // millionths of the texts that another holder of each stage computes again
	// layers that microbatches left out in training: texts continue without stages of these, if no holder answers; nil:
	// they fail
	Skips left.Layers
	Look  time.Duration // after which holders of stages that are left out are asked again
	Log   *slog.Logger
}

// Errors of a line.
var (
	ErrNoHolder = errors.New("no holder of the stage answers")
	errDiffers  = errors.New("it computes other values than the holder before it")
)

// Limits of the texts that are computed again.
const (
	checksAtOnce = 2  // a holder holds four dialogues with a front
	checksLeft   = 16 // that are under way or wait: the front keeps the inputs of each
)

// Line is the stages of a model: a generate.Stages. Run and End are for one goroutine at a time.
type Line struct {
	Config
	ctx     context.Context
	end     context.CancelFunc
	stages  []*stage
	checks  sync.WaitGroup
	turns   chan struct{}    // a place of each check that is under way
	without map[uint64][]int // stages that sequences leave out, ascending

	mu      sync.Mutex
	holders []*holder
	missing []int // stages that no holder answers for, and that new sequences leave out
	left    int   // checks that are under way or wait
}

// holder is a peer that has a stage.
type holder struct {
	addr     string
	stage    int // 0: it was not asked yet
	failures int // in a row
	until    time.Time
	excluded bool // it computed other values than two others
}

// peer is the peer ID at the end of the address: one holder may have several addresses.
func (h *holder) peer() string { return h.addr[strings.LastIndex(h.addr, "/p2p/")+1:] }

// stage is one stage, and the holder that continues its sequences.
type stage struct {
	number    int
	at        *holder
	talk      Conversation
	sequences map[uint64]*sequence
}

// sequence is what a stage was given of a text, and the digests of its results.
type sequence struct {
	passes  []section.Pass // of one row each
	digests []canon.Digest
	talk    Conversation // with the holder that remembers it
	by      *holder      // that computed the last result
	broken  bool         // a result has values that are no numbers
	checked bool         // another holder computes it again
}

// Connect asks the peers which stages they have. The error wraps ErrNoHolder if a stage has none, and no text may
// continue without it.
func Connect(ctx context.Context, c Config) (*Line, error) {
	l := &Line{Config: c, turns: make(chan struct{}, checksAtOnce), without: map[uint64][]int{}}
	l.ctx, l.end = context.WithCancel(context.WithoutCancel(ctx))
	for _, addr := range c.Peers {
		l.holders = append(l.holders, &holder{addr: addr})
	}
	for k := range c.Layout.Stages {
		l.stages = append(l.stages, &stage{number: k + 1, sequences: map[uint64]*sequence{}})
	}
	var found []error
	for _, h := range l.holders {
		if talk, _, err := l.greet(ctx, h); err != nil {
			found = append(found, fmt.Errorf("%s: %w", h.addr, err))
		} else {
			talk.Close()
		}
	}
	for _, s := range l.stages {
		if slices.ContainsFunc(l.holders, func(h *holder) bool { return h.stage == s.number }) {
			continue
		}
		if !l.miss(s.number) {
			l.end()
			return nil, errors.Join(fmt.Errorf("%w: stage %d of %d of model %s", ErrNoHolder, s.number, c.Layout.Stages,
				c.Weights.Short()), errors.Join(found...))
		}
	}
	if l.Skips != nil {
		l.checks.Go(l.watch)
	}
	return l, nil
}

// Close ends all dialogues, and checks that are under way.
func (l *Line) Close() {
	l.end()
	l.checks.Wait()
	for _, s := range l.stages {
		s.leave()
	}
}

// greet opens a dialogue with a holder, and learns its stage.
func (l *Line) greet(ctx context.Context, h *holder) (talk Conversation, stage int, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	talk, err = l.Dial(ctx, h.addr, wire.Longest(l.Layout.Config.Width))
	if err != nil {
		return nil, 0, err
	}
	a, err := ask(ctx, talk, wire.Question{Kind: wire.KindHello, Model: l.Weights}, 0)
	if err == nil && (a.Hello.Weights != l.Weights || a.Hello.Stages != l.Layout.Stages) {
		err = fmt.Errorf("it has stage %d of %d of model %s", a.Hello.Stage, a.Hello.Stages, a.Hello.Weights.Short())
	}
	if err != nil {
		talk.Close()
		return nil, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h.stage = a.Hello.Stage
	return talk, h.stage, nil
}

func ask(ctx context.Context, talk Conversation, q wire.Question, n int) (wire.Answer, error) {
	b, err := talk.Ask(ctx, q.Encode())
	if err != nil {
		return wire.Answer{}, err
	}
	return wire.ReadAnswer(b, q.Kind, n)
}

// candidates are the holders of a stage: those that have not failed first, in the order of the configuration.
func (l *Line) candidates(stage int) []*holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ready, later []*holder
	for _, h := range l.holders {
		switch {
		case h.excluded || h.stage != stage && h.stage != 0:
		case time.Now().Before(h.until):
			later = append(later, h)
		default:
			ready = append(ready, h)
		}
	}
	slices.SortStableFunc(ready, func(a, b *holder) int { return a.failures - b.failures })
	return append(ready, later...)
}

// fail lets a holder wait, longer after each failure.
func (l *Line) fail(h *holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.until = time.Now().Add(min(time.Second<<min(h.failures, 20), time.Minute))
	h.failures++
}

// through continues sequences by one stage: by the first of its holders that answers.
func (l *Line) through(s *stage, p section.Pass) ([]float32, error) {
	for _, r := range p.Rows {
		if r.Start == 0 || s.sequences[r.ID] == nil {
			s.sequences[r.ID] = &sequence{}
		}
	}
	deadline := time.Now().Add(l.Wait)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := ErrNoHolder
		list := l.candidates(s.number)
		if i := slices.Index(list, s.at); i > 0 && s.talk != nil {
			list[0], list[i] = list[i], list[0]
		}
		differ := 0
		for _, h := range list {
			hidden, failed := l.try(s, h, p)
			if failed == nil {
				return hidden, nil
			}
			l.Log.Warn("a holder of a stage fails", "stage", s.number, "holder", h.addr, "error", failed)
			err = errors.Join(err, failed)
			if s.declines(p, failed) {
				return nil, err
			}
			if errors.Is(failed, errDiffers) {
				differ++
			}
			l.fail(h)
			s.leave()
		}
		if differ > 0 && differ == len(list) {
			return nil, err // the values before are lies, which no holder continues
		}
		wait := time.NewTimer(pause)
		select {
		case <-l.ctx.Done():
			wait.Stop()
			return nil, errors.Join(err, l.ctx.Err())
		case <-wait.C:
		}
		if time.Now().After(deadline) {
			return nil, err
		}
	}
}

// declines reports whether the holder refuses to begin a text, and continues others. The text fails then: another
// holder would have to compute all of these again.
func (s *stage) declines(p section.Pass, failed error) bool {
	var told *wire.Refused
	if !errors.As(failed, &told) || slices.ContainsFunc(p.Rows, func(r section.Row) bool { return r.Start > 0 }) {
		return false
	}
	for _, q := range s.sequences {
		if q.talk == s.talk && len(q.passes) > 0 {
			return true
		}
	}
	return false
}

// leave ends the dialogue of a stage.
func (s *stage) leave() {
	if s.talk != nil {
		s.talk.Close()
	}
	s.at, s.talk = nil, nil
}

// try continues sequences by one holder, which first gets what it does not remember of them.
func (l *Line) try(s *stage, h *holder, p section.Pass) ([]float32, error) {
	if s.at != h {
		s.leave()
		talk, number, err := l.greet(l.ctx, h)
		if err != nil {
			return nil, err
		}
		if number != s.number {
			talk.Close()
			return nil, fmt.Errorf("it has stage %d", number)
		}
		s.at, s.talk = h, talk
	}
	for _, r := range p.Rows {
		q := s.sequences[r.ID]
		if q.talk != s.talk {
			digests, err := l.again(l.ctx, s.talk, q.passes)
			if err == nil && !slices.Equal(digests, q.digests) {
				l.settle(s.number, q)
				err = errDiffers
			}
			if err != nil {
				return nil, err
			}
			if len(q.passes) > 0 {
				l.Log.Info("a holder continues a text of another", "stage", s.number, "holder", h.addr, "tokens", r.Start)
			}
			q.talk = s.talk
		}
	}
	width, n := l.Layout.Config.Width, p.Tokens()
	if s.number == l.Layout.Stages {
		n = len(p.Rows)
	}
	ctx, cancel := context.WithTimeout(l.ctx, l.Timeout)
	defer cancel()
	a, err := ask(ctx, s.talk, wire.Question{Kind: wire.KindPass, Passes: []section.Pass{p}}, n*width)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	h.failures, h.until = 0, time.Time{}
	l.mu.Unlock()
	l.keep(s, p, a.Hidden)
	return a.Hidden, nil
}

// keep remembers what a stage was given of each sequence, and the digest of its result.
func (l *Line) keep(s *stage, p section.Pass, result []float32) {
	in, out, width := p.Hidden, result, l.Layout.Config.Width
	for _, r := range p.Rows {
		n := r.Count
		if s.number == l.Layout.Stages {
			n = 1
		}
		q := s.sequences[r.ID]
		q.passes = append(q.passes, section.Pass{Piece: p.Piece, Rows: []section.Row{r},
			Hidden: slices.Clone(in[:r.Count*width])})
		q.digests = append(q.digests, wire.Digest(out[:n*width]))
		q.by = s.at
		q.broken = q.broken || slices.ContainsFunc(out[:n*width], func(x float32) bool { return x-x != 0 })
		in, out = in[r.Count*width:], out[n*width:]
	}
}

// again has a holder compute a sequence from its beginning, and returns the digests of the results.
func (l *Line) again(ctx context.Context, talk Conversation, passes []section.Pass) (all []canon.Digest, err error) {
	for some := range slices.Chunk(passes, wire.MaxAgain) {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(1+len(some)/8)*l.Timeout)
		a, err := ask(ctx, talk, wire.Question{Kind: wire.KindAgain, Passes: some}, len(some))
		cancel()
		if err != nil {
			return nil, err
		}
		all = append(all, a.Digests...)
	}
	return all, nil
}

// End forgets a sequence, and has it computed again if it is drawn, or has values that are no numbers.
func (l *Line) End(id uint64) {
	delete(l.without, id)
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	drawn := binary.LittleEndian.Uint64(random[:])%1_000_000 < uint64(l.CheckPPM)
	for _, s := range l.stages {
		q := s.sequences[id]
		if q == nil {
			continue
		}
		delete(s.sequences, id)
		if drawn || q.broken {
			l.settle(s.number, q)
		}
		if q.talk == nil || q.talk != s.talk {
			continue // the holder has forgotten it with the dialogue
		}
		ctx, cancel := context.WithTimeout(l.ctx, l.Timeout)
		if _, err := ask(ctx, s.talk, wire.Question{Kind: wire.KindEnd, ID: id}, 0); err != nil {
			s.leave()
		}
		cancel()
	}
}

// settle has another holder compute a sequence again, once, unless too many wait for that.
func (l *Line) settle(stage int, q *sequence) {
	if q.checked || len(q.passes) == 0 {
		return
	}
	q.checked = true
	l.mu.Lock()
	full := l.left == checksLeft
	if !full {
		l.left++
	}
	l.mu.Unlock()
	if full {
		l.Log.Warn("a text is not computed again: too many wait for that", "stage", stage, "holder", q.by.addr)
		return
	}
	as := *q // the text may continue
	l.checks.Go(func() {
		l.turns <- struct{}{}
		l.check(stage, as)
		<-l.turns
		l.mu.Lock()
		defer l.mu.Unlock()
		l.left--
	})
}

// check has another holder compute a sequence. If it differs, a third one decides which of them is not asked any more.
func (l *Line) check(stage int, q sequence) {
	type result struct {
		by      *holder
		digests []canon.Digest
	}
	first := q.by
	results := []result{{first, q.digests}}
	for _, h := range l.candidates(stage) {
		if slices.ContainsFunc(results, func(r result) bool { return r.by.peer() == h.peer() }) {
			continue
		}
		talk, number, err := l.greet(l.ctx, h)
		if err != nil {
			continue
		}
		digests, err := l.again(l.ctx, talk, q.passes)
		talk.Close()
		if err != nil || number != stage {
			continue
		}
		for i, r := range results {
			if !slices.Equal(r.digests, digests) {
				continue
			}
			if len(results) == 1 {
				l.Log.Info("a text is computed again", "stage", stage, "holder", first.addr, "by", h.addr)
				return
			}
			l.exclude(stage, results[1-i].by)
			return
		}
		if results = append(results, result{h, digests}); len(results) > 2 {
			break
		}
	}
	if len(results) == 1 {
		l.Log.Warn("a text is not computed again: no other holder of the stage answers", "stage", stage, "holder",
			first.addr)
		return
	}
	l.Log.Error("holders of a stage compute other values, and no two agree", "stage", stage, "first", first.addr,
		"second", results[1].by.addr)
}

// exclude ends the use of a holder, by all of its addresses.
func (l *Line) exclude(stage int, h *holder) {
	l.mu.Lock()
	for _, x := range l.holders {
		x.excluded = x.excluded || x.peer() == h.peer()
	}
	l.mu.Unlock()
	l.Log.Error("a holder of a stage computes other values than two others: it is not asked any more", "stage", stage,
		"holder", h.addr)
}
