// Package push copies the model of a run to stores outside of the network: buckets that speak the protocol of Amazon
// S3, and repositories of a hub. The file push.json in the folder of the run lists the copies, how far each is, and
// why its latest try failed, so that a later process continues. Credentials come from the environment of the process
// and are in no file. Training does not wait for a copy, and does not fail with it.
package push

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job/stores"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/push/hub"
	"github.com/starling-network/starling/node/push/parcel"
	"github.com/starling-network/starling/node/push/pin"
	"github.com/starling-network/starling/node/push/record"
	"github.com/starling-network/starling/node/push/s3"
	"github.com/starling-network/starling/node/rundir"
)

const (
	maxRetry   = 5 * time.Minute
	writeEvery = 2 * time.Second // of progress
	keepDone   = 16              // copies of checkpoints that are remembered
)

// Options say whose files are copied.
type Options struct {
	Dir    string                                 // of a run, or of a model
	Title  string                                 // name of the model, for people
	Say    func(text string)                      // news; may be nil
	Sent   func(p api.Push)                       // progress; may be nil
	Listen []string                               // multiaddrs at which a pinning service reaches it; none: the loopback
	Ended  func(p api.Push)                       // a copy is done, or has failed; may be nil
	Retry  time.Duration                          // wait before the first repetition, doubled up to five minutes; 0: 1 s
	Wait   func(d time.Duration) <-chan time.Time // nil: time.After
}

// Sender makes the copies of one folder. The methods of a nil Sender do nothing.
type Sender struct {
	Options
	digests digests // of the goroutine that sends
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	records []*record.Copy
	written time.Time
	wake    chan struct{} // holds something when there may be work
	idle    chan struct{} // likewise, when a copy has ended
}

// Open reads what is to be copied. One process at a time may have a folder open: the caller holds its lock.
func Open(o Options) (*Sender, error) {
	if o.Retry == 0 {
		o.Retry = time.Second
	}
	if o.Wait == nil {
		o.Wait = time.After
	}
	kept, err := record.Load(o.Dir)
	if err != nil {
		return nil, err
	}
	for _, r := range kept {
		if r.State == record.Sending {
			r.State = record.Waiting // the process that sent it has ended
		}
	}
	return &Sender{Options: o, digests: digests{}, records: kept, wake: make(chan struct{}, 1),
		idle: make(chan struct{}, 1)}, nil
}

// Copies returns what is to be copied, and what is.
func (s *Sender) Copies() []api.Push {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return record.Pushes(s.records)
}

// Add has a folder copied, "" for the run itself, also if that was done or tried before.
func (s *Sender) Add(from string, to ...string) error {
	for _, target := range to {
		if !(stores.Push{To: target}).Known() {
			return &parcel.Error{Code: parcel.BadTarget, What: strconv.Quote(target) + " is no target",
				Fix: "write it as s3://BUCKET/PREFIX, hf:OWNER/NAME or ipfs"}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, target := range to {
		at := slices.IndexFunc(s.records, func(r *record.Copy) bool { return r.From == from && r.To == target })
		if at < 0 {
			at = len(s.records)
			s.records = append(s.records, &record.Copy{Push: api.Push{To: target, From: from}})
		}
		r := s.records[at]
		if r.Again = r.State == record.Sending; !r.Again {
			r.State, r.Reason, r.Updated = record.Waiting, nil, now()
		}
	}
	slices.SortStableFunc(s.records, inOrder)
	signal(s.wake)
	return s.write()
}

// Again has every copy tried that is not done.
func (s *Sender) Again() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.State == record.Failed {
			r.State, r.Reason = record.Waiting, nil
		}
	}
	signal(s.wake)
	return s.write()
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// write makes the records durable. The lock is held.
func (s *Sender) write() error {
	done := 0
	for i := len(s.records) - 1; i >= 0; i-- { // the latest last
		if r := s.records[i]; r.From != "" && (r.State == record.Done || r.State == record.Failed) {
			if done++; done > keepDone {
				s.records = slices.Delete(s.records, i, i+1)
			}
		}
	}
	s.written = time.Now()
	if err := folder.WriteJSON(filepath.Join(s.Dir, record.File), map[string]any{"pushes": s.records}); err != nil {
		return parcel.OnDisk(err)
	}
	return nil
}

// Start runs in the background until the context ends, or Close.
func (s *Sender) Start(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)
	s.running.Go(func() { s.Run(ctx) })
}

// Close ends what Start began. Copies that are not done stay in push.json.
func (s *Sender) Close() {
	if s != nil && s.cancel != nil {
		s.cancel()
		s.running.Wait()
	}
}

// Ready reports whether a target can be written to, as far as the environment of this process tells.
func Ready(target string) (err error) {
	p := stores.Push{To: target}
	if repo, ok := p.Hub(); ok {
		_, err = hub.FromEnvironment(repo)
	} else if p.IPFS() {
		_, err = pin.FromEnvironment()
	} else {
		_, err = s3.FromEnvironment()
	}
	return err
}

// Run makes the copies until the context ends. A copy that fails for now is tried again, ever less often.
func (s *Sender) Run(ctx context.Context) {
	wait := s.Retry
	for {
		r := s.next()
		if r == nil {
			select {
			case <-ctx.Done():
				return
			case <-s.wake:
			}
			continue
		}
		err := s.attempt(ctx, r)
		if ctx.Err() != nil {
			s.end(r, record.Waiting, nil)
			return
		}
		if err == nil || !parcel.Later(err) {
			s.conclude(r, err)
			wait = s.Retry
			continue
		}
		first := s.end(r, record.Waiting, err)
		if first {
			s.say("warning: %s is not at %s yet: %v; it is tried again", what(r), r.To, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Wait(wait):
		}
		wait = min(2*wait, maxRetry)
	}
}

// next is the copy to make; nil: none waits.
func (s *Sender) next() *record.Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.State == record.Waiting {
			r.State, r.Updated = record.Sending, now()
			return r
		}
	}
	return nil
}

// what is said of the files of a copy.
func what(r *record.Copy) string {
	if r.From == "" {
		return "the model"
	}
	return filepath.Base(r.From)
}

func (s *Sender) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(fmt.Sprintf(format, args...))
	}
}

// end records how a try ended, and reports whether the copy had no reason before.
func (s *Sender) end(r *record.Copy, state string, err error) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = r.Reason == nil
	if r.Again {
		state, r.Again = record.Waiting, false
	}
	r.State, r.Updated = state, now()
	if err != nil {
		r.Reason = Reason(err)
	}
	if state == record.Done {
		r.Reason, r.Uploads = nil, nil
	}
	if err := s.write(); err != nil {
		s.say("warning: %v", err)
	}
	signal(s.idle)
	return first
}

// Reason is an error for programs and people.
func Reason(err error) *api.Reason {
	if e, ok := errors.AsType[*parcel.Error](err); ok {
		return &api.Reason{Code: e.Code, Text: e.Error(), Next: e.Fix}
	}
	return &api.Reason{Code: parcel.Refused, Text: err.Error()}
}

// conclude ends a copy that is done, or that no other try of this process helps.
func (s *Sender) conclude(r *record.Copy, err error) {
	state := record.Done
	if err != nil {
		state = record.Failed
	}
	s.end(r, state, err)
	if err != nil {
		why := Reason(err)
		s.say("warning: %s is not copied to %s: %s; %s. Then: starling model push %s", what(r), r.To, why.Text, why.Next,
			s.Dir)
	} else {
		s.say("%s is at %s", what(r), r.Address)
	}
	if s.Ended != nil {
		s.Ended(s.copied(r))
	}
	s.clear(r.From)
}

func (s *Sender) copied(r *record.Copy) api.Push {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.Push
}

// Settle waits until no copy is under way or waits, or the context ends, or no byte has moved for so long. It reports
// whether all are done.
func (s *Sender) Settle(ctx context.Context, patience time.Duration) bool {
	if s == nil {
		return true
	}
	last, at := int64(-1), time.Now()
	for {
		open, failed, sent := 0, 0, int64(0)
		for _, p := range s.Copies() {
			sent += p.Sent
			switch p.State {
			case record.Waiting, record.Sending:
				open++
			case record.Failed:
				failed++
			}
		}
		if open == 0 {
			return failed == 0
		}
		if sent != last {
			last, at = sent, time.Now()
		}
		if patience > 0 && time.Since(at) > patience {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-s.idle:
		case <-time.After(writeEvery):
		}
	}
}

// attempt makes a copy, or continues it.
func (s *Sender) attempt(ctx context.Context, r *record.Copy) error {
	target := stores.Push{To: r.To}
	if target.IPFS() {
		return s.toIPFS(ctx, r)
	}
	dir := filepath.Join(s.Dir, filepath.FromSlash(r.From))
	files, total, err := s.digests.list(dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	r.Files, r.Bytes, r.Sent = len(files), total, 0
	err = s.write()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if bucket, prefix, ok := target.S3(); ok {
		return s.toBucket(ctx, r, s3.Target{Bucket: bucket, Prefix: prefix}, files)
	}
	repo, _ := target.Hub()
	return s.toHub(ctx, r, repo, files)
}

// moved records how many bytes of a copy the store has.
func (s *Sender) moved(r *record.Copy, sent int64) {
	s.mu.Lock()
	r.Sent, r.Updated = sent, now()
	p := r.Push
	if time.Since(s.written) >= writeEvery {
		_ = s.write() // the next one tells
	}
	s.mu.Unlock()
	if s.Sent != nil {
		s.Sent(p)
	}
}

func (s *Sender) toBucket(ctx context.Context, r *record.Copy, t s3.Target, files []parcel.File) error {
	settings, err := s3.FromEnvironment()
	if err != nil {
		return err
	}
	at := s3.Target{Bucket: t.Bucket, Prefix: strings.Trim(t.Prefix+"/"+folderOf(r.From), "/")}
	s.mu.Lock()
	if r.Uploads == nil {
		r.Uploads = map[string]s3.Upload{}
	}
	open := r.Uploads
	s.mu.Unlock()
	c := s3.New(at, settings, open, func(change func()) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		change()
		return s.write()
	})
	defer c.Close()
	done := int64(0)
	for _, f := range files {
		if err := c.Put(ctx, f, func(n int64) { s.moved(r, done+n) }); err != nil {
			return err
		}
		done += f.Bytes
	}
	s.arrived(r, c.Address(at.Prefix))
	return nil
}

func (s *Sender) toHub(ctx context.Context, r *record.Copy, repo string, files []parcel.File) error {
	c, err := hub.FromEnvironment(repo)
	if err != nil {
		return err
	}
	defer c.Close()
	title := "Upload " + s.Title
	if r.From != "" {
		title += ", " + folderOf(r.From)
	}
	if err := c.Put(ctx, folderOf(r.From), title, files, func(n int64) { s.moved(r, n) }); err != nil {
		return err
	}
	s.arrived(r, c.Address(folderOf(r.From)))
	return nil
}

// toIPFS has the last checkpoint of a run pinned.
func (s *Sender) toIPFS(ctx context.Context, r *record.Copy) error {
	cid, err := lastCheckpoint(s.Dir)
	if err != nil {
		return err
	}
	c, err := pin.FromEnvironment()
	if err != nil {
		return err
	}
	defer c.Close()
	s.mu.Lock()
	r.Sent = 0
	s.mu.Unlock()
	blobs := filepath.Join(s.Dir, rundir.DirBlobs)
	if err := c.Pin(ctx, blobs, cid, s.Title, s.Listen, func(n int64) { s.moved(r, n) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Address = "ipfs://" + cid
	return nil
}

// lastCheckpoint is the CID of the last checkpoint of the run in a folder.
func lastCheckpoint(dir string) (string, error) {
	o := &rundir.OutDir{Path: dir}
	err := o.ReadRun()
	var lines []rundir.Line
	if err == nil {
		lines, err = rundir.ParseLineage(o.File(rundir.FileLineage), o.Run.ID)
	}
	if err != nil || len(lines) == 0 {
		return "", &parcel.Error{Code: parcel.NoModel, What: dir + " holds no run with a checkpoint", Err: err,
			Fix: "name the output folder of a run: a pinning service gets its last checkpoint"}
	}
	return lines[len(lines)-1].Checkpoint, nil
}

func (s *Sender) arrived(r *record.Copy, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Address, r.Sent = address, r.Bytes
}

// folderOf is where a folder of the run is in the store.
func folderOf(from string) string {
	if from == "" {
		return ""
	}
	return filepath.Base(from)
}

// clear removes the folder of a checkpoint that no copy needs any more.
func (s *Sender) clear(from string) {
	if from == "" {
		return
	}
	s.mu.Lock()
	needed := slices.ContainsFunc(s.records, func(r *record.Copy) bool {
		return r.From == from && (r.State == record.Waiting || r.State == record.Sending)
	})
	s.mu.Unlock()
	if needed {
		return
	}
	if err := os.RemoveAll(filepath.Join(s.Dir, filepath.FromSlash(from))); err != nil {
		s.say("warning: %v", err)
	}
}
