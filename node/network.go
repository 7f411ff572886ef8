package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/node/home"
)

// Names in the folder that InitNetwork makes.
const (
	fileNetwork   = "network.json"
	fileGenesis   = "genesis.json"
	fileValidator = "validator.json"
	dirConsumer   = "consumer"
)

// Network is network.json: what there is to a network made by InitNetwork, and how to reach it.
type Network struct {
	ChainID    string   `json:"chain_id"`
	RPC        []string `json:"rpc"`        // of the validators, such as http://127.0.0.1:26601
	GRPC       []string `json:"grpc"`       // of the validators, such as 127.0.0.1:26602
	REST       []string `json:"rest"`       // of the validators, such as http://127.0.0.1:26603
	Validators []string `json:"validators"` // folders, relative to that of this file
	Workers    []string `json:"workers"`
	Verifiers  []string `json:"verifiers"`
	Consumer   string   `json:"consumer"`
}

// validatorFile is validator.json: where a validator listens, and where the others do.
type validatorFile struct {
	ChainID string   `json:"chain_id"`
	Listen  string   `json:"listen"` // host:port for other validators
	RPC     string   `json:"rpc"`    // host:port of the HTTP interface of CometBFT
	GRPC    string   `json:"grpc"`   // host:port of the gRPC interface of the application; "": none
	REST    string   `json:"rest"`   // host:port of the same over HTTP with JSON; "": none
	Peers   []string `json:"peers,omitempty"`
	BlockMS int      `json:"block_ms"`

	Sync *chain.Sync `json:"sync,omitempty"` // of one that joined a chain
	Full bool        `json:"full,omitempty"` // it is no validator: it follows the chain and answers clients
}

// private moves the interfaces for clients to the loopback.
func (f *validatorFile) private() {
	for _, at := range []*string{&f.RPC, &f.GRPC, &f.REST} {
		if _, port, err := net.SplitHostPort(*at); err == nil {
			*at = net.JoinHostPort("127.0.0.1", port)
		}
	}
}

// NetworkOptions says what network to make.
type NetworkOptions struct {
	ChainID    string
	Validators int
	Workers    int // accounts with coins
	Verifiers  int
	Hosts      []string // that everybody reaches the validators at: one for all, or one for each
	Port       int      // first of the ports: validator i takes Port+10i for the others, and the next for CometBFT, gRPC and REST
	BlockTime  time.Duration
	Private    bool // validators answer clients of their own machine only
}

// Errors of folders of networks and parties.
var (
	ErrNetworkExists = errors.New("the folder holds a network already")
	ErrNoNetwork     = errors.New("the folder holds no network")
	ErrNoValidator   = errors.New("the folder holds no validator")
	ErrIsValidator   = errors.New("the folder holds a validator already")
	ErrBehind        = errors.New("the validator is not where the others are yet")
	ErrNoBlock       = errors.New("no block in a minute")
)

// genesisAge is how old the genesis of a new network is. A validator sleeps until the genesis, by its own clock; one whose
// clock is slow by less than this starts at once.
const genesisAge = 24 * time.Hour

// maxNetwork bounds the parties of each kind.
const maxNetwork = 100

func (o NetworkOptions) check() error {
	switch {
	case o.ChainID == "":
		return errors.New("node: a network needs a name")
	case o.Validators < 1 || o.Validators > maxNetwork || min(o.Workers, o.Verifiers) < 0 || max(o.Workers, o.Verifiers) > maxNetwork:
		return fmt.Errorf("node: %d validators, %d workers and %d verifiers: at least one validator, at most %d of each", o.Validators, o.Workers, o.Verifiers, maxNetwork)
	case len(o.Hosts) != 1 && len(o.Hosts) != o.Validators:
		return fmt.Errorf("node: %d validators at %d hosts: name one for all, or one for each", o.Validators, len(o.Hosts))
	case o.Port < 1 || o.Port+10*o.Validators > 65536:
		return fmt.Errorf("node: %d validators have no ports from %d on", o.Validators, o.Port)
	}
	return checkBlockTime(o.BlockTime)
}

func checkBlockTime(d time.Duration) error {
	if d < 50*time.Millisecond || d > time.Minute {
		return fmt.Errorf("node: a block time of %v: use 50ms to 1m", d)
	}
	return nil
}

// validatorAt is the configuration of a validator without peers: it has a port and the three after it.
func validatorAt(chainID, host string, port int, blockTime time.Duration) validatorFile {
	at := func(i int) string { return net.JoinHostPort(host, strconv.Itoa(port+i)) }
	return validatorFile{ChainID: chainID, Listen: at(0), RPC: at(1), GRPC: at(2), REST: at(3), BlockMS: int(blockTime.Milliseconds())}
}

// InitNetwork makes a folder with everything that a new network starts from: a genesis that all validators share, a
// folder with keys for each of them, and folders with keys for workers, verifiers and a consumer whose accounts have coins.
// Keys are made once and never overwritten.
func InitNetwork(dir string, o NetworkOptions) (*Network, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, fileNetwork)); !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrNetworkExists, dir), err)
	}
	n := &Network{ChainID: o.ChainID, Consumer: dirConsumer}
	n.Workers, n.Verifiers = numbered("worker", o.Workers), numbered("verifier", o.Verifiers)
	n.Validators = numbered("validator", o.Validators)
	var accounts []chain.Funded
	for _, name := range append(append([]string{dirConsumer}, n.Workers...), n.Verifiers...) {
		h, _, err := home.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, chain.Funded{Address: h.Account().Address(), Amount: embeddedFunds})
	}
	var keys []chain.Keys
	for _, name := range n.Validators {
		k, err := chain.MakeKeys(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	genesis, err := chain.Genesis(o.ChainID, time.Now().Add(-genesisAge), keys, accounts)
	if err != nil {
		return nil, err
	}
	if err := genesis.SaveAs(filepath.Join(dir, fileGenesis)); err != nil {
		return nil, err
	}
	for i, name := range n.Validators {
		home := filepath.Join(dir, name)
		f := o.validator(i, keys)
		n.RPC, n.GRPC, n.REST = append(n.RPC, "http://"+f.RPC), append(n.GRPC, f.GRPC), append(n.REST, "http://"+f.REST)
		if err := errors.Join(genesis.SaveAs(filepath.Join(home, "config", fileGenesis)), writeJSON(filepath.Join(home, fileValidator), f)); err != nil {
			return nil, err
		}
	}
	return n, writeJSON(filepath.Join(dir, fileNetwork), n)
}

// validator is the configuration of validator i.
func (o NetworkOptions) validator(i int, keys []chain.Keys) validatorFile {
	of := func(i int) validatorFile {
		return validatorAt(o.ChainID, o.Hosts[i%len(o.Hosts)], o.Port+10*i, o.BlockTime)
	}
	f := of(i)
	if o.Private {
		f.private()
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

// ReadNetwork reads the network.json of a folder.
func ReadNetwork(dir string) (*Network, error) {
	n := new(Network)
	if err := readJSON(filepath.Join(dir, fileNetwork), n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoNetwork, err)
	}
	return n, nil
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
			return fmt.Errorf("%w from %s: %w", ErrNoBlock, address, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func firstBlock(ctx context.Context, address string) error {
	rpc, err := client.Dial(address)
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
