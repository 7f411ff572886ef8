package fault

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/libp2p/go-libp2p"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
)

// While a job runs, strangers flood the interfaces of all validators, accounts with coins send transactions at the
// default price of gas, which the transactions of the job pay, too, and a registered peer and strangers hold the upload
// slots of all workers. Blocks come, the job ends with the model that it determines, and nobody loses stake. A
// member whose memory is too small for the job leaves it at no cost, and the consumer reaches the chain through a full
// node alone.
func TestSiege(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, false, nil)
	n.ask = n.fullNode()
	n.newcomer.start(0) // gives the slow readers an identity that members give blobs to
	n.newcomer.ready()
	n.newcomer.signal(syscall.SIGTERM)
	n.newcomer.end()
	tiny := &process{t: t, name: "tiny"}
	n.all = append(n.all, tiny)
	tiny.args = []string{"worker", "up", "--home", filepath.Join(n.dir, "tiny"), "--network", n.rpc[1], "--threads", "1",
		"--memory", "1"}
	tiny.start(0)
	said := tiny.says(`starling account send (starling1\w+) ([0-9.]+)`)
	send := exec.Command(program, "account", "send", said[1], said[2], "--network", n.ask, "--home",
		filepath.Join(n.dir, "consumer"))
	if out, err := send.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", send, err, out)
	}
	tiny.ready()
	n.set = []string{"--set", "strategy.workers.target=5", "--set", "training.global_batch_size=10"}

	ctx, end := context.WithCancel(t.Context())
	var hostile sync.WaitGroup
	answers := n.flood(ctx, &hostile)
	held := n.loris(ctx, &hostile)
	spammed := n.spam(ctx, &hostile)
	longest := n.longestBlock(ctx)
	begun := time.Now()
	n.judge("siege", 5, nil)
	took := time.Since(begun)
	end()
	hostile.Wait()
	sent, paid := spammed()
	t.Logf("spammers have %d transactions in blocks, for %d uzen", sent, paid)
	if sent < 100 || paid < sent*leastFee {
		t.Errorf("%d transactions for %d uzen: wanted 100, each for %d", sent, paid, leastFee)
	}
	tiny.says(`MEMORY_TOO_SMALL: left `)
	t.Logf("%.0f s, %d answers to the flood, %d leaves held, the longest block took %v", took.Seconds(), answers.Load(),
		held.Load(), time.Duration(longest.Load()))
	if answers.Load() < 100 || held.Load() == 0 {
		t.Errorf("%d answers and %d leaves are no siege", answers.Load(), held.Load())
	}
	if d := time.Duration(longest.Load()); d > 20*blockTime {
		t.Errorf("a block took %v", d)
	}
}

// fullNode starts a full node, and returns its HTTP interface once it follows the chain.
func (n *network) fullNode() string {
	n.t.Helper()
	p := &process{t: n.t, name: "full"}
	n.all = append(n.all, p)
	dir := filepath.Join(n.dir, p.name)
	join := exec.Command(program, "validator", "join", "--home", dir, "--full", "--network", n.rpc[0], "--port",
		fmt.Sprint(freePorts(n.t)),
		"--block-time", blockTime.String(), "--snapshot-every", "0", "-o", "json")
	out, err := join.Output()
	var made struct {
		RPC, Operator, Phrase string
	}
	if err != nil || json.Unmarshal(out, &made) != nil || made.Operator+made.Phrase != "" {
		n.t.Fatalf("%s: %v\n%s", join, err, out)
	}
	p.args = []string{"validator", "up", "--home", dir}
	p.start(0)
	p.says(`full node of`)
	if seeds, err := filepath.Glob(filepath.Join(dir, "config", "validator.seed*")); err != nil || len(seeds) > 0 {
		n.t.Errorf("a full node has keys of a validator: %v, %v", seeds, err)
	}
	n.blocks("the full node to follow", func(int64) bool {
		said, err := exec.Command(program, "network", "status", "--network", made.RPC, "-o", "json").CombinedOutput()
		var s struct {
			Height     int64
			CatchingUp bool `json:"catching_up"`
			Validators []struct{}
		}
		return err == nil && json.Unmarshal(said, &s) == nil && s.Height > 0 && !s.CatchingUp &&
			len(s.Validators) == validators
	})
	return made.RPC
}

// flood asks every validator what costs it the most, as often as it answers, from several connections, until the
// context ends.
func (n *network) flood(ctx context.Context, working *sync.WaitGroup) *atomic.Int64 {
	answers := new(atomic.Int64)
	junk := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x0a, 0x7f}, 1<<16))
	for _, at := range n.rpc {
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"abci_query","params":{"path":"/starling.market.v1.Query/Lots","data":"","height":"0","prove":false}}`,
			`{"jsonrpc":"2.0","id":1,"method":"abci_query","params":{"path":"/app/simulate","data":"` +
				strings.Repeat("0a7f", 1<<15) + `","height":"0","prove":false}}`,
			`{"jsonrpc":"2.0","id":1,"method":"broadcast_tx_sync","params":{"tx":"` + junk + `"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tx_search","params":{"query":"tx.height>0","prove":true,"page":"1","per_page":"100","order_by":"desc"}}`,
		} {
			for range 2 {
				working.Go(func() {
					for ctx.Err() == nil {
						r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(body))
						if err != nil {
							return
						}
						r.Header.Set("Content-Type", "application/json")
						a, err := http.DefaultClient.Do(r)
						if err != nil {
							select {
							case <-ctx.Done():
							case <-time.After(10 * time.Millisecond): // refused: it asks again
							}
							continue
						}
						_, _ = io.Copy(io.Discard, a.Body)
						_ = a.Body.Close()
						answers.Add(1)
					}
				})
			}
		}
	}
	return answers
}

// leastFee is what a transaction of any kind pays at the default price of gas: it takes more than 40,000 units.
const leastFee = 40_000 * market.GasPrice / 1_000_000

// spam has an account at every validator send transactions as fast as they are taken, until the context ends. What is
// returned says then how many are in blocks, and what they cost.
func (n *network) spam(ctx context.Context, working *sync.WaitGroup) func() (sent, paid uint64) {
	n.t.Helper()
	const coins = 1000 // ZEN
	var spammers []*client.Client
	for _, at := range n.rpc {
		c, err := client.Connect(at, client.KeyFromSeed(canon.Sum("spammer", []byte(n.dir+at))))
		if err != nil {
			n.t.Fatal(err)
		}
		spammers = append(spammers, c)
		send := exec.Command(program, "account", "send", c.Address(), fmt.Sprint(coins),
			"--network", n.ask, "--home", filepath.Join(n.dir, "consumer"))
		if out, err := send.CombinedOutput(); err != nil {
			n.t.Fatalf("%s: %v\n%s", send, err, out)
		}
		working.Go(func() {
			me := c.Address()
			own := &banktypes.MsgSend{FromAddress: me, ToAddress: me, Amount: adapter.Coins(1)}
			for ctx.Err() == nil {
				if _, err := c.SubmitAsync(ctx, own); err != nil {
					select {
					case <-ctx.Done():
					case <-time.After(10 * time.Millisecond): // refused: it tries again
					}
				}
			}
		})
	}
	return func() (sent, paid uint64) {
		for _, c := range spammers {
			defer c.Close()
			made, err := n.chain.Transactions(n.t.Context(), c.Address())
			left, wrong := n.chain.Balance(n.t.Context(), c.Address())
			if err != nil || wrong != nil {
				n.t.Fatal(err, wrong)
			}
			sent, paid = sent+made, paid+coins*1_000_000-left
		}
		return sent, paid
	}
}

// loris connects to every worker as a registered peer and as strangers, asks for the updates of the run on as many
// streams as it is let open, and reads next to nothing of what comes.
func (n *network) loris(ctx context.Context, working *sync.WaitGroup) *atomic.Int64 {
	n.t.Helper()
	held := new(atomic.Int64)
	registered, err := home.Read(filepath.Join(n.dir, n.newcomer.name))
	if err != nil {
		n.t.Fatal(err)
	}
	participants, err := n.chain.Participants(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	for _, p := range participants {
		if !slices.ContainsFunc(n.workers, func(w *process) bool { return w.address == p.ID }) {
			continue
		}
		info := p2p.AddrInfo{}
		for _, a := range p.Addrs {
			if m, err := multiaddr.NewMultiaddr(a); err == nil {
				if i, err := p2p.AddrInfoFromP2pAddr(m); err == nil {
					info.ID, info.Addrs = i.ID, append(info.Addrs, i.Addrs...)
				}
			}
		}
		for i := range 8 {
			key := registered.Peer()
			if i > 0 {
				if key, err = peer.GenerateKey(); err != nil {
					n.t.Fatal(err)
				}
			}
			working.Go(func() { n.hold(ctx, key, info, held) })
		}
	}
	return held
}

// hold keeps streams to a worker open, on which it asks for what the run's workers serve and reads a byte at a time.
func (n *network) hold(ctx context.Context, key peer.Key, to p2p.AddrInfo, held *atomic.Int64) {
	h, err := libp2p.New(libp2p.Identity(key), libp2p.NoListenAddrs, libp2p.DisableRelay(), libp2p.DisableMetrics(),
		libp2p.ResourceManager(nil))
	if err != nil {
		n.t.Error(err)
		return
	}
	defer h.Close()
	for ctx.Err() == nil {
		_ = h.Connect(ctx, to) // a worker that has had enough of it refuses
		for _, c := range n.wanted(ctx) {
			s, err := h.NewStream(ctx, to.ID, peer.Protocol)
			if err != nil {
				break
			}
			body := canon.MustMarshal(struct {
				Root []byte `cbor:"1,keyasint"`
				From uint32 `cbor:"2,keyasint"`
				To   uint32 `cbor:"3,keyasint"`
			}{c.Bytes(), 0, 1})
			for range 4 {
				_, _ = s.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...))
			}
			go func() {
				if _, err := io.ReadFull(s, make([]byte, 5)); err == nil { // it has begun to answer
					held.Add(1)
				}
			}()
		}
		select {
		case <-ctx.Done():
		case <-time.After(blockTime):
		}
	}
}

// wanted are blobs that the workers of the runs under way serve.
func (n *network) wanted(ctx context.Context) (list []blob.CID) {
	jobs, err := n.chain.Runs(ctx, true)
	if err != nil {
		return nil
	}
	for _, j := range jobs {
		s, err := n.chain.Run(ctx, j)
		if err != nil {
			return list
		}
		for _, id := range append(updates(s), s.Terms.SpecCID) {
			if c, err := blob.Parse(id); err == nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// updates are the CIDs of those that the units of a run have committed.
func updates(s run.State) (list []string) {
	for _, u := range s.Units {
		list = append(list, u.Commit.UpdateCID)
	}
	return list
}

// longestBlock measures the longest time between the arrival of two blocks, until the context ends.
func (n *network) longestBlock(ctx context.Context) *atomic.Int64 {
	n.t.Helper()
	longest := new(atomic.Int64)
	blocks, err := n.chain.Blocks(ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	go func() {
		last := time.Time{}
		for b := range blocks {
			if !last.IsZero() {
				longest.Store(max(longest.Load(), int64(b.Time.Sub(last))))
			}
			last = b.Time
		}
	}()
	return longest
}
