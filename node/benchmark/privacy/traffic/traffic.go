// Package traffic trains on data of owners over real connections, records every byte that the owners send, and looks
// for their data in it.
package traffic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client/job"
	protocol "github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/owner"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/prepare"
)

// Window is how many bytes of the data in a row count as shown.
const Window = 16

// Seen is what owners have sent.
type Seen struct {
	Owners  int `json:"owners"`
	Rounds  int `json:"rounds"`
	Bytes   int `json:"bytes"`   // sent by all owners, with headers
	Windows int `json:"windows"` // of the data of all owners
	Found   int `json:"found"`   // of those, in the bytes
}

const owners = 3

// file is the job. The sample of the coordinator has other texts than the owners.
const file = `apiVersion: starling/v1
kind: FederatedJob
name: traffic
task: classify
model:
  architecture: llama
  config: {hidden_size: 16, intermediate_size: 32, num_hidden_layers: 1, num_attention_heads: 2,
    max_position_embeddings: 40}
  tokenizer: byte-level
datasets: [{path: "*.jsonl"}]
sequence_len: 32
val_set_size: 0.2
training: {max_steps: 12, global_batch_size: 4, learning_rate: 1.0e-2}
strategy: {method: fedavg, sync_steps: 4, round_timeout: 60s}
federated: {owners: 3, clip: 10, classes: [down, up]}
`

// Measure trains in a folder, and returns what was on the wire.
func Measure(ctx context.Context, dir string, progress func(string)) (s Seen, err error) {
	c, stop, err := coordinate(filepath.Join(dir, "coordinator"), progress)
	if err != nil {
		return s, err
	}
	defer stop()
	server := httptest.NewServer(wire.Handler(c, c.Job(), wire.Wall{}))
	defer server.Close()
	sent, data, failures := make([]record, owners), make([][]byte, owners), make([]error, owners)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for i := range owners {
		of := filepath.Join(dir, fmt.Sprint("owner", i))
		if data[i], err = write(filepath.Join(of, "data"), uint64(i+1)); err != nil {
			return s, err
		}
		running.Go(func() {
			if failures[i] = join(ctx, server.URL, of, &sent[i]); failures[i] != nil {
				cancel()
			}
		})
	}
	r, err := c.Run(ctx)
	if err == nil {
		c.Linger(ctx, federated.Lingers)
	}
	cancel()
	running.Wait()
	if err = errors.Join(append(failures, err)...); err != nil {
		return s, err
	}
	s.Owners, s.Rounds = r.Owners, r.Rounds
	for i := range owners {
		windows, found := Search(sent[i].bytes.Bytes(), data[i])
		s.Bytes, s.Windows, s.Found = s.Bytes+sent[i].bytes.Len(), s.Windows+windows, s.Found+found
	}
	return s, nil
}

// coordinate is the coordinator of the job.
func coordinate(dir string, progress func(string)) (c *federated.Coordinator, stop func(), err error) {
	if _, err := write(dir, 0); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		return nil, nil, err
	}
	j, err := job.ReadFederated(path)
	if err != nil {
		return nil, nil, err
	}
	b, err := prepare.New(j)
	if err != nil {
		return nil, nil, err
	}
	stop = func() { _ = b.Close() } // it is read only
	c, err = federated.New(b, federated.Options{Dir: dir, Phase: time.Minute, Threads: 1, Say: progress})
	if err != nil {
		stop()
	}
	return c, stop, err
}

// write writes texts that a number draws, and returns their bytes.
func write(dir string, number uint64) ([]byte, error) {
	random := rand.New(rand.NewPCG(number, 1))
	var all bytes.Buffer
	for i := range 40 {
		word := func() string {
			return string(rune('a'+random.IntN(26))) + strings.Repeat(string(rune('a'+random.IntN(26))), 1+random.IntN(3))
		}
		text := fmt.Sprintf("%s%s %s%s %s%s %s", word(), word(), word(), word(), word(), word(), word())
		fmt.Fprintf(&all, "{\"text\": %q, \"label\": %q}\n", text, []string{"down", "up"}[i%2])
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return all.Bytes(), os.WriteFile(filepath.Join(dir, "texts.jsonl"), all.Bytes(), 0o600)
}

// join is one owner, whose connections are recorded.
func join(ctx context.Context, url, dir string, sent *record) (err error) {
	home, err := owner.OpenHome(filepath.Join(dir, "home"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	client := &http.Client{Transport: &http.Transport{DialContext: sent.dial}}
	defer client.CloseIdleConnections()
	r, err := owner.Join(ctx, owner.Options{URL: url, HTTP: client, Home: home, Data: filepath.Join(dir, "data"),
		Budget: owner.Budget{Unit: protocol.OfOwner, Delta: 1e-5}, Threads: 1, Retry: 10 * time.Second,
		Say: func(string) {}})
	if err == nil && r.Sent == 0 {
		err = errors.New("an owner sent no update")
	}
	return err
}

// record has the bytes that were written to connections.
type record struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (r *record) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return recorded{c, r}, err
}

type recorded struct {
	net.Conn
	to *record
}

// Write implements net.Conn.
func (c recorded) Write(b []byte) (int, error) {
	c.to.mu.Lock()
	c.to.bytes.Write(b)
	c.to.mu.Unlock()
	return c.Conn.Write(b)
}

// Search counts the windows of data, and those of them that are in bytes.
func Search(sent, data []byte) (windows, found int) {
	of := map[string]bool{}
	for at := range max(0, len(data)-Window+1) {
		of[string(data[at:at+Window])] = true
	}
	windows = len(of)
	for at := range max(0, len(sent)-Window+1) {
		if w := string(sent[at : at+Window]); of[w] {
			found++
			delete(of, w)
		}
	}
	return windows, found
}
