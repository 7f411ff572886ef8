package keystore

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/starling-network/starling/node/folder"
)

// Names in the folder that InitNetwork makes.
const (
	FileNetwork   = "network.json"
	FileGenesis   = "genesis.json"
	FileValidator = "validator.json"
	DirConsumer   = "consumer"
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

// ValidatorFile is validator.json: where a validator listens, and where the others do.
type ValidatorFile struct {
	ChainID string   `json:"chain_id"`
	Listen  string   `json:"listen"` // host:port for other validators
	RPC     string   `json:"rpc"`    // host:port of the HTTP interface of CometBFT
	GRPC    string   `json:"grpc"`   // host:port of the gRPC interface of the application; "": none
	REST    string   `json:"rest"`   // host:port of the same over HTTP with JSON; "": none
	Peers   []string `json:"peers,omitempty"`
	BlockMS int      `json:"block_ms"`

	Sync *Sync `json:"sync,omitempty"` // of one that joined a chain
	Full bool  `json:"full,omitempty"` // it is no validator: it follows the chain and answers clients
}

// Sync is a block that a validator which joined a chain trusts, as chain.Sync.
type Sync struct {
	Servers []string `json:"servers"`
	Height  int64    `json:"height"`
	Hash    string   `json:"hash"`
}

// Private moves the interfaces for clients to the loopback.
func (f *ValidatorFile) Private() {
	for _, at := range []*string{&f.RPC, &f.GRPC, &f.REST} {
		if _, port, err := net.SplitHostPort(*at); err == nil {
			*at = net.JoinHostPort("127.0.0.1", port)
		}
	}
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

// ReadNetwork reads the network.json of a folder.
func ReadNetwork(dir string) (*Network, error) {
	n := new(Network)
	if err := folder.ReadJSON(filepath.Join(dir, FileNetwork), n); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoNetwork, err)
	}
	return n, nil
}
