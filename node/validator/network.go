package validator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/protocol/coin"
)

// NetworkOptions says what network to make.
type NetworkOptions struct {
	ChainID    string
	Validators int
	Workers    int // accounts with coins
	Verifiers  int
	Hosts      []string // that everybody reaches the validators at: one for all, or one for each
	// first of the ports: validator i takes Port+10i for the others, and the next for CometBFT, gRPC and REST
	Port      int
	BlockTime time.Duration
	Private   bool // validators answer clients of their own machine only

	Coins []string // symbols and decimals of coins besides the network's own, as usdc:6; orders may be placed in them
}

// testCoins is the balance of every account of a new network in each of its other coins, in coins.
const testCoins = "1000000"

// coins are the other coins of a new network, each with the balance of an account.
func (o NetworkOptions) coins() (all []chain.Funded, err error) {
	for _, text := range o.Coins {
		symbol, decimals, _ := strings.Cut(text, ":")
		n, err := strconv.ParseUint(decimals, 10, 8)
		if err != nil {
			return nil, fmt.Errorf("network: %q is no coin: write its symbol and decimals, such as usdc:6", text)
		}
		c := coin.Registered{Coin: coin.Coin{Denom: "base/" + symbol, Symbol: symbol, Exponent: uint32(n)}}
		if c.Waiting, err = c.Parse("0.01"); err != nil {
			c.Waiting = 1
		}
		f := chain.Funded{Coin: c}
		if f.Amount, err = c.Parse(testCoins); err != nil {
			return nil, err
		}
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("network: %w", err)
		}
		all = append(all, f)
	}
	return all, nil
}

// GenesisFunds is the balance of every account of a new network, in uzen.
const GenesisFunds = 1_000_000_000_000

// genesisAge is how old the genesis of a new network is. A validator sleeps until the genesis, by its own clock; one
// whose clock is slow by less than this starts at once.
const genesisAge = 24 * time.Hour

// maxNetwork bounds the parties of each kind.
const maxNetwork = 100

func (o NetworkOptions) check() error {
	switch {
	case o.ChainID == "":
		return errors.New("network: a network needs a name")
	case o.Validators < 1 || o.Validators > maxNetwork || min(o.Workers, o.Verifiers) < 0 ||
		max(o.Workers, o.Verifiers) > maxNetwork:
		return fmt.Errorf("network: %d validators, %d workers and %d verifiers: at least one validator, at most %d of each",
			o.Validators, o.Workers, o.Verifiers, maxNetwork)
	case len(o.Hosts) != 1 && len(o.Hosts) != o.Validators:
		return fmt.Errorf("network: %d validators at %d hosts: name one for all, or one for each", o.Validators, len(o.Hosts))
	case o.Port < 1 || o.Port+10*o.Validators > 65536:
		return fmt.Errorf("network: %d validators have no ports from %d on", o.Validators, o.Port)
	}
	return checkBlockTime(o.BlockTime)
}

func checkBlockTime(d time.Duration) error {
	if d < 50*time.Millisecond || d > time.Minute {
		return fmt.Errorf("network: a block time of %v: use 50ms to 1m", d)
	}
	return nil
}

// validatorAt is the configuration of a validator without peers: it has a port and the three after it.
func validatorAt(chainID, host string, port int, blockTime time.Duration) keystore.ValidatorFile {
	at := func(i int) string { return net.JoinHostPort(host, strconv.Itoa(port+i)) }
	return keystore.ValidatorFile{ChainID: chainID, Listen: at(0), RPC: at(1), GRPC: at(2), REST: at(3),
		BlockMS: int(blockTime.Milliseconds())}
}

// InitNetwork makes a folder with everything that a new network starts from: a genesis that all validators share, a
// folder with keys for each of them, and folders with keys for workers, verifiers and a consumer whose accounts have
// coins. Keys are made once and never overwritten.
func InitNetwork(dir string, o NetworkOptions) (*keystore.Network, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, keystore.FileNetwork)); !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("%w: %s", keystore.ErrNetworkExists, dir), err)
	}
	n := &keystore.Network{ChainID: o.ChainID, Consumer: keystore.DirConsumer}
	n.Workers, n.Verifiers = numbered("worker", o.Workers), numbered("verifier", o.Verifiers)
	n.Validators = numbered("validator", o.Validators)
	coins, err := o.coins()
	if err != nil {
		return nil, err
	}
	var accounts []chain.Funded
	for _, name := range append(append([]string{keystore.DirConsumer}, n.Workers...), n.Verifiers...) {
		h, _, err := home.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, chain.Funded{Address: h.Account().Address(), Amount: GenesisFunds})
		for _, f := range coins {
			f.Address = h.Account().Address()
			accounts = append(accounts, f)
		}
	}
	var keys []identity.Keys
	for _, name := range n.Validators {
		k, err := identity.MakeKeys(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	genesis, err := chain.Genesis(o.ChainID, time.Now().Add(-genesisAge), keys, accounts)
	if err != nil {
		return nil, err
	}
	if err := genesis.SaveAs(filepath.Join(dir, keystore.FileGenesis)); err != nil {
		return nil, err
	}
	for i, name := range n.Validators {
		home := filepath.Join(dir, name)
		f := o.validator(i, keys)
		n.RPC, n.GRPC, n.REST = append(n.RPC, "http://"+f.RPC), append(n.GRPC, f.GRPC), append(n.REST, "http://"+f.REST)
		if err := errors.Join(genesis.SaveAs(filepath.Join(home, "config", keystore.FileGenesis)),
			folder.WriteJSON(filepath.Join(home, keystore.FileValidator), f)); err != nil {
			return nil, err
		}
	}
	return n, folder.WriteJSON(filepath.Join(dir, keystore.FileNetwork), n)
}

// validator is the configuration of validator i.
func (o NetworkOptions) validator(i int, keys []identity.Keys) keystore.ValidatorFile {
	of := func(i int) keystore.ValidatorFile {
		return validatorAt(o.ChainID, o.Hosts[i%len(o.Hosts)], o.Port+10*i, o.BlockTime)
	}
	f := of(i)
	if o.Private {
		f.Private()
	}
	for j, k := range keys {
		if j != i {
			f.Peers = append(f.Peers, k.NodeID()+"@"+of(j).Listen)
		}
	}
	return f
}

func numbered(name string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%d", name, i)
	}
	return list
}

// AwaitNetwork returns when the validator at an address makes blocks, or ErrNoBlock after a minute.
func AwaitNetwork(outer context.Context, address string) error {
	ctx, cancel := context.WithTimeout(outer, time.Minute)
	defer cancel()
	for {
		err := firstBlock(ctx, address)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			if err := outer.Err(); err != nil {
				return err
			}
			return fmt.Errorf("%w from %s: %w", keystore.ErrNoBlock, address, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func firstBlock(ctx context.Context, address string) error {
	rpc, err := endpoint.Dial(address)
	if err != nil {
		return err
	}
	defer func() { _ = rpc.Stop() }()
	s, err := rpc.Status(ctx)
	if err == nil && s.SyncInfo.LatestBlockHeight < 1 {
		err = errors.New("it has no block yet")
	}
	return err
}
