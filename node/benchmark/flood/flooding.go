package flood

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	rpcclient "github.com/cometbft/cometbft/rpc/client"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/adapter"
	xmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// orders adds orders that no offer fits: every block that tries one looks at all offers.
func (f Flood) orders(add func(module, collection string, key, value any)) {
	consumer := keyed("consumer", 0).Address()
	spec := &train.Spec{Rounds: 4, Units: 4, Steps: 1, Segment: 1}
	for i := range f.Orders {
		id := numbered("order", i)
		of := bundle.Terms(id, spec, 1<<30, bundle.Checks{AuditPPM: 100_000, Screen: terms.ScreenUpdates})
		of.SpecCID, of.Genesis = "spec", terms.Checkpoint{Root: of.Spec, CID: "genesis"}
		o := market.Order{
			ID: id, Consumer: consumer, Terms: of, Budget: 1_000_000 + uint64(i), PriceCap: 1_000_000_000,
			Workers: market.Workers{Min: 4, Target: 4, Max: 4}, Verifiers: 2,
			Conditions: market.Conditions{Machines: []market.Machine{{Memory: math.MaxUint32}}},
		}
		add("market", "jobs", id, xmarket.Job{Order: o, Status: xmarket.Open})
		add("market", "escrows", id, market.Escrow{Budget: o.Budget})
		add("market", "open", id, nil)
		add("market", "ranked", []string{strconv.FormatUint(math.MaxUint64-o.Budget, 10), id}, nil)
	}
}

// pools adds pools, each with a machine and its offer.
func (f Flood) pools(add func(module, collection string, key, value any)) {
	for i := range f.Pools {
		pool, machine := keyed("pool", i).Address(), keyed("machine", i).Address()
		p := staked(machine, crew.Worker)
		p.Pool, p.Hardware = pool, registry.Hardware{Memory: 1 << 10}
		add("registry", "participants", pool, staked(pool, crew.Worker))
		add("registry", "participants", machine, p)
		add("registry", "pooled", []string{pool, machine}, nil)
		o := market.Offer{ID: pool, Role: crew.Worker, Price: 1, Slots: 8, Pool: true}
		add("market", "offers", []string{strconv.Itoa(int(o.Role)), pool}, o)
	}
}

// perSpammer is how many transactions an account brings.
const perSpammer = 250

// spammer is an account whose transactions pay nothing.
type spammer struct {
	key *wallet.Key
	txs [][]byte
}

func newSpammer(i int) *spammer { return &spammer{key: keyed("spammer", i)} }

func (s *spammer) sign(ctx context.Context, a transaction.Account, n int) error {
	for range n {
		self := s.key.Address()
		m := &banktypes.MsgSend{FromAddress: self, ToAddress: self, Amount: adapter.Coins(1)}
		tx, err := transaction.Sign(ctx, s.key, a, 0, m)
		if err != nil {
			return err
		}
		s.txs = append(s.txs, tx)
		a.Sequence++
	}
	return nil
}

// flooding is a flood under way.
type flooding struct {
	node    rpcclient.Client
	scene   *scene
	all     sync.WaitGroup
	asked   atomic.Int64
	refused error // why a move is
}

// begin opens the disputes, signs the transactions of the flood, and starts to send them.
func (s *scene) begin(ctx context.Context, v *chain.Validator, f Flood) (*flooding, error) {
	c := &flooding{node: v.Client(), scene: s}
	for _, a := range s.cast.keys {
		var err error
		if a.next, err = accountOf(ctx, v, a.key); err != nil {
			return nil, err
		}
	}
	for _, p := range s.spammers {
		a, err := accountOf(ctx, v, p.key)
		if err != nil {
			return nil, err
		}
		if err := p.sign(ctx, a, perSpammer); err != nil {
			return nil, err
		}
	}
	opened, err := s.cast.challenges(ctx)
	if err == nil {
		err = c.bring(ctx, opened)
	}
	for height := int64(settled); err == nil; height++ {
		var games int
		if games, _, err = s.cast.played(ctx, v); games == len(opened) {
			break
		}
		if height > settled+mostOpening {
			return nil, fmt.Errorf("benchmark: %d of %d disputes are open after %d blocks", games, len(opened), mostOpening)
		}
		height, err = Reaches(ctx, v, height+1)
	}
	if err != nil {
		return nil, err
	}
	shown, picked, err := s.cast.moves(ctx)
	if err != nil {
		return nil, err
	}
	c.all.Go(func() { c.refused = errors.Join(c.bring(ctx, shown), c.bring(ctx, picked)) })
	question := s.spammers[0].txs[0]
	for i := range f.Asking {
		c.all.Go(func() { c.ask(ctx, question) })
		c.all.Go(func() { c.spam(ctx, s.spammers, i, f.Asking) })
	}
	return c, nil
}

func accountOf(ctx context.Context, v *chain.Validator, k *wallet.Key) (transaction.Account, error) {
	c := client.New(v.Client(), k)
	defer c.Close()
	number, sequence, err := c.Sequence(ctx)
	return transaction.Account{ChainID: "bench", Number: number, Sequence: sequence}, err
}

// mostOpening is in how many blocks all disputes open.
const mostOpening = 400

// bring sends transactions. A refusal is an error unless the pool is full.
func (c *flooding) bring(ctx context.Context, txs [][]byte) error {
	for _, tx := range txs {
		r, err := c.node.BroadcastTxSync(ctx, tx)
		for err != nil && strings.Contains(err.Error(), "is full") && ctx.Err() == nil {
			time.Sleep(floodBlocks / 20)
			r, err = c.node.BroadcastTxSync(ctx, tx)
		}
		if err == nil && r.Code != 0 {
			err = fmt.Errorf("benchmark: a move is refused: %s", r.Log)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ended says what blocks took, once nothing more comes.
func (c *flooding) ended(ctx context.Context, v *chain.Validator, r *Report) error {
	c.all.Wait()
	if c.refused != nil && !errors.Is(c.refused, context.Canceled) {
		return c.refused
	}
	r.Asked = int(c.asked.Load())
	for _, p := range c.scene.spammers {
		a, err := accountOf(ctx, v, p.key)
		if err != nil {
			return err
		}
		r.Free += int(a.Sequence)
	}
	var err error
	_, r.Moves, err = c.scene.cast.played(ctx, v)
	return err
}

// ask asks for simulations without end.
func (c *flooding) ask(ctx context.Context, tx []byte) {
	for ctx.Err() == nil {
		_, _ = c.node.ABCIQueryWithOptions(ctx, "/app/simulate", cmtbytes.HexBytes(tx), rpcclient.ABCIQueryOptions{})
		c.asked.Add(1)
	}
}

// spam brings transactions without a fee, and once more those that are refused.
func (c *flooding) spam(ctx context.Context, of []*spammer, first, step int) {
	for ctx.Err() == nil {
		for i := first; i < len(of); i += step {
			for _, tx := range of[i].txs {
				if ctx.Err() != nil {
					return
				}
				_, _ = c.node.BroadcastTxSync(ctx, tx)
			}
		}
	}
}
