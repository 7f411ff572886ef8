// Package payer starts a chain whose coins belong to the account of a phrase, for the wallets that package compat asks.
// It is apart from package compat because it links a chain.
package payer

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/cosmos/cosmos-sdk/crypto/hd"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain"
)

// Start starts a chain of one validator that has 1,000 ZEN for the account which wallets derive from a phrase. It
// returns the address of its RPC; stop ends it and deletes its folder.
func Start(ctx context.Context, phrase string) (rpc string, stop func(), err error) {
	secret, err := hd.Secp256k1.Derive()(phrase, "", sdk.GetConfig().GetFullBIP44Path())
	if err != nil {
		return "", nil, err
	}
	address := sdk.AccAddress((&secp256k1.PrivKey{Key: secret}).PubKey().Address()).String()
	home, err := os.MkdirTemp("", "starling-compat-")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(home)
		}
	}()
	c := chain.Config{Home: home, ChainID: "compat", BlockTime: 50 * time.Millisecond,
		Accounts: []chain.Funded{{Address: address, Amount: 1_000_000_000}}}
	for _, port := range []*string{&c.RPC, &c.GRPC} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", nil, err
		}
		*port = l.Addr().String()
		if err := l.Close(); err != nil {
			return "", nil, err
		}
	}
	v, err := chain.Start(ctx, c)
	if err != nil {
		return "", nil, err
	}
	return "http://" + c.RPC, func() { v.Stop(); _ = os.RemoveAll(home) }, nil
}
