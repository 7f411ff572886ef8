// Package browser measures the dashboard and the API of a server: answers, streams, and painting in a browser. It is no
// dashboard.
package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/runs/synthetic"
	"github.com/starling-network/starling/web"
)

// Options say how long the dashboard and the API are measured.
type Options struct {
	Steps   int           // inner steps of the run that is shown
	Load    time.Duration // of requests
	Rate    int           // requests a second
	Streams int           // event streams that are open meanwhile
	Starts  int           // of the program
	Program string        // to start; "": none is
}

// Quick and WebThorough are the options of the command.
var (
	Quick    = Options{Steps: 100_000, Load: 5 * time.Second, Rate: 1000, Streams: 500, Starts: 5}
	Thorough = Options{Steps: 100_000, Load: 30 * time.Second, Rate: 1000, Streams: 500, Starts: 20}
)

// Result is the response times of the dashboard and the API. Milliseconds are wall-clock time.
type Result struct {
	Bars []benchmark.Bar `json:"bars"`
	// the Chromium that painted; "" if none is installed: the first paint is then the last byte that the page needs
	Browser      string  `json:"browser"`
	PaintMS      float64 `json:"paint_ms"`
	ShownMS      float64 `json:"shown_ms"`  // until the curve of the run is there; 0 without a browser
	ReadMS       float64 `json:"read_ms"`   // of the run from its files, which the first paint includes
	P50MS        float64 `json:"p50_ms"`    // of a request of a job's status
	P99MS        float64 `json:"p99_ms"`    // from when it was due, so that waiting for others counts
	PerSecond    float64 `json:"requests"`  // answered a second
	Streams      int     `json:"streams"`   // that each got an event of the change made at the end
	StartMS      float64 `json:"start_ms"`  // of `starling version`, the fastest
	StartMedian  float64 `json:"start_p50"` // the median
	RunsMeasured int     `json:"paints"`
}

// Measure measures the dashboard and the API over a run that it makes, on the loopback and in one process with those
// who ask.
func Measure(ctx context.Context, o Options) (*Result, error) {
	root, err := os.MkdirTemp("", "starling-bench-web-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	made := synthetic.Run{Name: "long", Steps: o.Steps, Every: 20, Finished: true}
	if err := made.Write(filepath.Join(root, made.Name)); err != nil {
		return nil, err
	}
	r := &Result{}
	if err := r.paint(ctx, root); err != nil {
		return nil, err
	}
	if err := r.load(ctx, root, made, o); err != nil {
		return nil, err
	}
	if err := r.start(ctx, o); err != nil {
		return nil, err
	}
	paint := "first paint, ms"
	if r.Browser == "" {
		paint = "last byte that the first paint needs, ms"
	}
	r.Bars = []benchmark.Bar{benchmark.Below(paint, max(r.PaintMS, r.ShownMS), 1000),
		benchmark.AtLeast("job status, requests a second", r.PerSecond, 0.99*float64(o.Rate)),
		benchmark.Below("job status p99, ms", r.P99MS, 50),
		benchmark.AtLeast("event streams served meanwhile", float64(r.Streams), float64(o.Streams))}
	if o.Program != "" {
		r.Bars = append(r.Bars, benchmark.Below("start of a local command, ms", r.StartMS, 100))
	}
	return r, nil
}

// served shows a folder until stop.
func served(root string) (address string, stop func() error, err error) {
	lib, err := runs.Open(root)
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- web.New(web.Config{Runs: lib}).Serve(ctx, l) }()
	return l.Addr().String(), func() error { cancel(); return <-done }, nil
}

// paints is how often the first paint is measured, each time of a server that has just begun; the fastest counts.
const paints = 3

func (r *Result) paint(ctx context.Context, root string) error {
	browser, _ := exec.LookPath("chromium") // without one the bytes are measured
	r.Browser, r.RunsMeasured = browser, paints
	for i := range paints {
		address, stop, err := served(root)
		if err != nil {
			return err
		}
		began := time.Now()
		var painted, shown float64
		if browser != "" {
			painted, shown, err = paintTimes(ctx, browser, "http://"+address+"/jobs/long")
		} else if err = fetchAll(ctx, "http://"+address, firstPaint); err == nil {
			painted = milliseconds(time.Since(began))
		}
		if err = errors.Join(err, stop()); err != nil {
			return err
		}
		if i == 0 || painted < r.PaintMS {
			r.PaintMS = painted
		}
		if i == 0 || shown < r.ShownMS {
			r.ShownMS = shown
		}
	}
	lib, err := runs.Open(root)
	if err != nil {
		return err
	}
	began := time.Now()
	_, err = lib.History(ctx, "long")
	r.ReadMS = milliseconds(time.Since(began))
	return err
}

func milliseconds(d time.Duration) float64 {
	return benchmark.Rounded(float64(d)/float64(time.Millisecond), 3)
}

// firstPaint are the paths that the page of a run requests before it shows its curve.
var firstPaint = []string{"/jobs/long", "/style.css", "/app.js", "/dom.js", "/api.js", "/chart.js", "/pages/job.js",
	"/pages/record.js", "/v1/jobs/long", "/v1/jobs/long/metrics?points=1000&series=loss,eval_loss",
	"/v1/jobs/long/samples", "/v1/jobs/long/lineage?limit=1000&order=desc"}

func fetchAll(ctx context.Context, base string, paths []string) error {
	for _, p := range paths {
		if err := fetch(ctx, http.DefaultClient, base+p); err != nil {
			return err
		}
	}
	return nil
}

func fetch(ctx context.Context, c *http.Client, url string) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	a, err := c.Do(q)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, a.Body)
	if err = errors.Join(err, a.Body.Close()); err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("benchmark: %s: %s", url, a.Status)
	}
	return err
}

// load asks for the status of a job at a rate while streams are open, and then has each stream tell of a change.
func (r *Result) load(ctx context.Context, root string, made synthetic.Run, o Options) error {
	address, stop, err := served(root)
	if err != nil {
		return err
	}
	base := "http://" + address
	ctx, cancel := context.WithCancel(ctx)
	var told atomic.Int64
	var open, ended sync.WaitGroup
	streams := &http.Client{Transport: &http.Transport{MaxIdleConns: -1}}
	open.Add(o.Streams)
	for range o.Streams {
		ended.Go(func() { follow(ctx, streams, base+"/v1/jobs/long/events", open.Done, &told) })
	}
	open.Wait()
	err = r.ask(ctx, base+"/v1/jobs/long", o)
	before := told.Load()
	if err == nil {
		rounds := made.Steps / made.Every
		err = made.Append(filepath.Join(root, made.Name), rounds, rounds+1)
	}
	for patience := time.Now().Add(20 * time.Second); err == nil && told.Load()-before < int64(o.Streams) &&
		time.Now().Before(patience); {
		time.Sleep(10 * time.Millisecond)
	}
	r.Streams = int(told.Load() - before)
	cancel()
	ended.Wait()
	return errors.Join(err, stop())
}

// follow reads a stream and counts its events after the first.
func follow(ctx context.Context, c *http.Client, url string, opened func(), told *atomic.Int64) {
	opened = sync.OnceFunc(opened)
	defer opened()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	a, err := c.Do(q)
	if err != nil {
		return
	}
	defer a.Body.Close()
	b := make([]byte, 64<<10)
	for first := true; ; {
		n, err := a.Body.Read(b)
		if err != nil {
			return
		}
		for range countEvents(b[:n]) {
			if !first {
				told.Add(1)
			}
			first = false
			opened()
		}
	}
}

// countEvents counts what begins an event. A read that cuts the word in two is rare, and counts as none.
func countEvents(b []byte) (n int) {
	const word = "event: update"
	for i := 0; i+len(word) <= len(b); i++ {
		if string(b[i:i+len(word)]) == word {
			n++
		}
	}
	return n
}

// askers is how many requests may be under way at once.
const askers = 64

// ask sends requests when they are due, whether earlier ones were answered or not, and notes when each was answered.
func (r *Result) ask(ctx context.Context, url string, o Options) error {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: askers}}
	total := int(o.Load.Seconds() * float64(o.Rate))
	took := make([]time.Duration, total)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	began := time.Now()
	for range askers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(total); i = next.Add(1) - 1 {
				due := began.Add(time.Duration(i) * time.Second / time.Duration(o.Rate))
				time.Sleep(time.Until(due))
				if err := fetch(ctx, c, url); err != nil {
					failed.Store(&err)
					return
				}
				took[i] = time.Since(due)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	r.PerSecond = benchmark.Rounded(float64(total)/time.Since(began).Seconds(), 1)
	slices.Sort(took)
	r.P50MS, r.P99MS = milliseconds(took[total/2]), milliseconds(took[total*99/100])
	return nil
}

// start measures how long the program takes to say its version.
func (r *Result) start(ctx context.Context, o Options) error {
	if o.Program == "" {
		return nil
	}
	var took []time.Duration
	for range o.Starts {
		began := time.Now()
		if err := exec.CommandContext(ctx, o.Program, "version").Run(); err != nil {
			return fmt.Errorf("benchmark: %s version: %w", o.Program, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	r.StartMS, r.StartMedian = milliseconds(took[0]), milliseconds(took[len(took)/2])
	return nil
}
