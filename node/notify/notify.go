// Package notify reports the progress of a job to a web server of its author: it posts a small JSON object for every
// event that the job file names.
//
// It is no queue that survives the process: an event that the server does not accept after a few tries is reported to
// the user of this process and dropped. Training does not wait for it.
package notify

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/coin"
)

// The events of a job.
const (
	Finished = "finished"  // the run is over, and its model written
	Failed   = "failed"    // the run ended before its last round
	Paused   = "paused"    // no round begins until the consumer resumes the job or raises its budget
	Budget80 = "budget_80" // four fifths of the budget are spent

	LossRises  = "loss_rises"  // the loss on held-out data rises
	MemberLost = "member_lost" // a worker or verifier is out of the run before its end

	Pushed     = "pushed"      // a copy of the model, or of a checkpoint, is in a store
	PushFailed = "push_failed" // a copy cannot be made before a person does something
)

// Event is what a server gets.
type Event struct {
	Event      string    `json:"event"`
	Job        string    `json:"job"`
	Name       string    `json:"name"`
	Text       string    `json:"text"` // a sentence for people
	Time       time.Time `json:"time"`
	Step       int       `json:"step"` // inner steps done
	Steps      int       `json:"steps"`
	Round      int       `json:"round"`
	Rounds     int       `json:"rounds"`
	Loss       *float64  `json:"loss,omitempty"`
	EvalLoss   *float64  `json:"eval_loss,omitempty"`
	PaidUzen   uint64    `json:"paid_uzen"`
	BudgetUzen uint64    `json:"budget_uzen"`
	Coin       coin.Coin `json:"coin,omitzero"`    // of the two amounts, in its grains; absent: ZEN
	Target     string    `json:"target,omitempty"` // store of a copy
	Member     string    `json:"member,omitempty"` // account that was lost
}

// Config is the address, and the events that are sent to it.
type Config struct {
	URL    string
	On     []string        // events
	Secret []byte          // signs the events; nil: they are not signed
	Failed func(err error) // gets an event that could not be delivered; it may be called from any goroutine

	Retry        time.Duration // wait before the first repetition, doubled after each; 0: a second
	CloseTimeout time.Duration // longest wait for the server when the run is over; 0: 15 seconds
}

const (
	tries   = 4
	timeout = 5 * time.Second // of one try
	backlog = 16              // events
)

// Sender tells one server. The methods of a nil Sender do nothing.
type Sender struct {
	Config
	queue  chan Event
	done   chan struct{}
	cancel context.CancelFunc
	once   sync.Once
	http   *http.Client
	paused bool // the job is paused, and the event is sent
	rise   rise
}

// Open starts the sender. Without an address nothing is sent, and the Sender is nil.
func Open(c Config) *Sender {
	if c.URL == "" {
		return nil
	}
	if c.Retry == 0 {
		c.Retry = time.Second
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = 15 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sender{Config: c, queue: make(chan Event, backlog), done: make(chan struct{}), cancel: cancel,
		http: &http.Client{Timeout: timeout}}
	go func() {
		defer close(s.done)
		for e := range s.queue {
			if err := s.deliver(ctx, e); err != nil && s.Failed != nil {
				s.Failed(err)
			}
		}
	}()
	return s
}

// Wants reports whether the job asks for an event.
func (s *Sender) Wants(event string) bool { return s != nil && slices.Contains(s.On, event) }

// Known is a number for an Event; nil if it is none.
func Known(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// Spent tells when what is paid passes four fifths of the budget: before is what was paid before e.
func (s *Sender) Spent(before uint64, e Event) {
	e.Event = Budget80
	if mark := e.BudgetUzen / 5 * 4; before < mark && e.PaidUzen >= mark {
		s.Send(e, fmt.Sprintf("%s has spent 80 %% of its budget, in round %d of %d.", e.Name, e.Round, e.Rounds))
	}
}

// Pause tells when a job that was not paused is.
func (s *Sender) Pause(paused bool, e Event) {
	e.Event = Paused
	if s != nil && paused && !s.paused {
		s.Send(e, fmt.Sprintf("%s is paused after round %d of %d: it continues when it is resumed or its budget is raised.",
			e.Name, e.Round, e.Rounds))
	}
	if s != nil {
		s.paused = paused
	}
}

// Send tells of an event in a sentence, if the job asks for it.
func (s *Sender) Send(e Event, text string) {
	if !s.Wants(e.Event) {
		return
	}
	e.Text, e.Time = text, time.Now().UTC()
	select {
	case s.queue <- e:
	default:
		if s.Failed != nil {
			s.Failed(fmt.Errorf("notify: %s: too many events wait", e.Event))
		}
	}
}

// Close gives the server a moment to take in what is left. Nothing may be sent any more.
func (s *Sender) Close() {
	if s == nil {
		return
	}
	s.once.Do(func() {
		close(s.queue)
		late := time.AfterFunc(s.CloseTimeout, s.cancel)
		<-s.done
		late.Stop()
		s.cancel()
	})
}

// id is the identifier of an event, by which a server knows a repetition, also one of a process that was started again.
func (e Event) id() string {
	d := canon.Sum("starling/webhook/1", []byte(e.Job), []byte(e.Event), []byte(strconv.Itoa(e.Round)), []byte(e.Target),
		[]byte(e.Member), []byte(e.Text))
	return "msg_" + hex.EncodeToString(d[:16])
}

// deliver posts an event, a few times if it must.
func (s *Sender) deliver(ctx context.Context, e Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	wait, id := s.Retry, e.id()
	for n := 1; ; n++ {
		again, err := s.post(ctx, id, body)
		if err == nil {
			return nil
		}
		if !again || n == tries {
			return fmt.Errorf("notify: %s is not delivered: %w", e.Event, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("notify: %s is not delivered: %w", e.Event, err)
		case <-time.After(wait):
		}
		wait *= 2
	}
}

// post reports whether another try may succeed.
func (s *Sender) post(ctx context.Context, id string, body []byte) (again bool, _ error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "starling")
	sign(r.Header, s.Secret, id, time.Now(), body)
	answer, err := s.http.Do(r)
	if err != nil {
		return true, err
	}
	_, _ = io.CopyN(io.Discard, answer.Body, 1<<16) // so that the connection serves the next event
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests,
			fmt.Errorf("the server answers %s", answer.Status)
	}
	return false, nil
}
