package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"cosmossdk.io/log/v2"
	"cosmossdk.io/math"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/client/tx"
	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/cosmos-sdk/x/genutil"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/app/room"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/x/beacon"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/protocol/coin"
)

// Limits of a block, in bytes. A transaction may hold both the data that a party of a dispute shows and the opening of
// a job, of at most 2 MiB each.
const (
	MaxBlockBytes = 12 << 20
	MaxTxBytes    = room.MaxTx
)

// maxBody is the size in bytes of a request with the largest transaction, in base64.
const maxBody = MaxTxBytes*4/3 + 1<<16

// A validator that signed fewer than the part leastSigned (5 %) of the last signedWindow blocks is jailed and loses a
// hundredth of its stake. It may therefore be offline for hours. With the SDK's defaults, half of the last 100 blocks,
// a restart would be punished, and the network could not bear another fault.
const signedWindow = 10_000

var leastSigned = math.LegacyNewDecWithPrec(5, 2)

// Funded is an account that has coins before the first block.
type Funded struct {
	Address string
	Amount  uint64          // grains of the coin
	Coin    coin.Registered // zero: the network's own; another one is registered, and exists on this chain alone
}

// Genesis returns the genesis of a chain: its validators, each with identity.SelfStake, and accounts with coins. Every
// process of the chain starts from the same document.
func Genesis(chainID string, at time.Time, validators []identity.Keys,
	accounts []Funded) (*cmttypes.GenesisDoc, error) {
	a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), app.Config{ChainID: chainID, Simulated: true})
	if err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	state := a.DefaultGenesis()
	for _, v := range validators {
		accounts = append(accounts, Funded{Address: v.Address(), Amount: identity.SelfStake})
	}
	if err := fund(a.Codec, state, accounts); err != nil {
		return nil, err
	}
	if err := registerCoins(state, accounts); err != nil {
		return nil, err
	}
	var slashing slashingtypes.GenesisState
	a.Codec.MustUnmarshalJSON(state[slashingtypes.ModuleName], &slashing)
	slashing.Params.SignedBlocksWindow, slashing.Params.MinSignedPerWindow = signedWindow, leastSigned
	state[slashingtypes.ModuleName] = a.Codec.MustMarshalJSON(&slashing)
	if err := validate(a, state, chainID, validators); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("genesis: %w", err)
	}
	params := cmttypes.DefaultConsensusParams()
	params.Block.MaxBytes, params.Block.MaxGas = MaxBlockBytes, room.BlockGas
	params.ABCI.VoteExtensionsEnableHeight = 1 // for the beacon
	doc := &cmttypes.GenesisDoc{ChainID: chainID, GenesisTime: at.UTC(), InitialHeight: 1, ConsensusParams: params,
		AppState: raw}
	return doc, doc.ValidateAndComplete()
}

// fund adds the accounts and their coins to the state of the auth and bank modules.
func fund(cdc codec.Codec, state map[string]json.RawMessage, accounts []Funded) error {
	var auth authtypes.GenesisState
	var bank banktypes.GenesisState
	cdc.MustUnmarshalJSON(state[authtypes.ModuleName], &auth)
	cdc.MustUnmarshalJSON(state[banktypes.ModuleName], &bank)
	coins := map[string]sdk.Coins{}
	var list []authtypes.GenesisAccount
	for _, f := range accounts {
		address, err := sdk.AccAddressFromBech32(f.Address)
		if err != nil {
			return fmt.Errorf("genesis: account %q: %w", f.Address, err)
		}
		if coins[f.Address] == nil {
			list = append(list, authtypes.NewBaseAccountWithAddress(address))
		}
		coins[f.Address] = coins[f.Address].Add(adapter.CoinsOf(f.Coin.Coin, f.Amount)...)
	}
	for _, account := range list {
		address := account.GetAddress().String()
		bank.Balances = append(bank.Balances, banktypes.Balance{Address: address, Coins: coins[address]})
	}
	list = authtypes.SanitizeGenesisAccounts(list)
	packed, err := authtypes.PackAccounts(list)
	if err != nil {
		return fmt.Errorf("genesis: %w", err)
	}
	auth.Accounts = packed
	if err := authtypes.ValidateGenAccounts(list); err != nil {
		return fmt.Errorf("genesis: %w", err)
	}
	bank.Balances = banktypes.SanitizeGenesisBalances(bank.Balances)
	bank.DenomMetadata = []banktypes.Metadata{{
		Description: "Pays for verified work on Starling.", Base: adapter.Denom, Display: "zen", Name: "Zen", Symbol: "ZEN",
		DenomUnits: []*banktypes.DenomUnit{{Denom: adapter.Denom}, {Denom: "zen", Exponent: 6}},
	}}
	state[authtypes.ModuleName] = cdc.MustMarshalJSON(&auth)
	state[banktypes.ModuleName] = cdc.MustMarshalJSON(&bank)
	return nil
}

// registerCoins registers the coins of the accounts in the state of the market.
func registerCoins(state map[string]json.RawMessage, accounts []Funded) error {
	type entry struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}
	var coins, symbols []entry
	known := map[string]coin.Registered{}
	for _, f := range accounts {
		c := f.Coin
		if c.Own() {
			continue
		}
		if earlier, ok := known[c.Denom]; ok && earlier != c {
			return fmt.Errorf("genesis: %w: two coins of the denomination %s", coin.ErrCoin, c.Denom)
		} else if ok {
			continue
		}
		if err := errors.Join(c.Validate(), sdk.ValidateDenom(c.Denom)); err != nil {
			return fmt.Errorf("genesis: %w", err)
		}
		known[c.Denom] = c
		coins, symbols = append(coins, entry{c.Denom, c}), append(symbols, entry{c.Symbol, c.Denom})
	}
	if len(coins) == 0 {
		return nil
	}
	var module map[string]json.RawMessage
	if err := json.Unmarshal(state[market.Name], &module); err != nil {
		return fmt.Errorf("genesis: %w", err)
	}
	var errs [3]error
	module["coins"], errs[0] = json.Marshal(coins)
	module["symbols"], errs[1] = json.Marshal(symbols)
	state[market.Name], errs[2] = json.Marshal(module)
	return errors.Join(errs[:]...)
}

// validate adds the validators to the state: a signed transaction that creates each of them, and its key for the
// beacon.
func validate(a *app.App, state map[string]json.RawMessage, chainID string, validators []identity.Keys) error {
	keys := map[string]ed25519.PublicKey{}
	var txs []sdk.Tx
	for i, v := range validators {
		keys[string(v.Consensus.PubKey().Address())] = v.VRF.Public().(ed25519.PublicKey)
		signed, err := create(a, chainID, fmt.Sprintf("validator-%d", i), v)
		if err != nil {
			return fmt.Errorf("genesis: validator %d: %w", i, err)
		}
		txs = append(txs, signed)
	}
	var err error
	if state[beacon.Name], err = beacon.Genesis(keys); err != nil {
		return err
	}
	_, err = genutil.SetGenTxsInAppGenesisState(a.Codec, a.Tx.TxJSONEncoder(), state, txs)
	return err
}

// create returns the signed transaction with which an operator creates its validator.
func create(a *app.App, chainID, moniker string, v identity.Keys) (sdk.Tx, error) {
	msg, err := v.Creation(moniker, identity.SelfStake)
	if err != nil {
		return nil, err
	}
	b := a.Tx.NewTxBuilder()
	if err := b.SetMsgs(msg); err != nil {
		return nil, err
	}
	b.SetGasLimit(1_000_000)
	const mode = signing.SignMode_SIGN_MODE_DIRECT
	signature := signing.SignatureV2{PubKey: v.Operator.PubKey(), Data: &signing.SingleSignatureData{SignMode: mode}}
	if err := b.SetSignatures(signature); err != nil {
		return nil, err
	}
	signer := authsigning.SignerData{Address: v.Address(), ChainID: chainID, PubKey: v.Operator.PubKey()}
	if signature, err = tx.SignWithPrivKey(context.Background(), mode, signer, b, v.Operator, a.Tx, 0); err != nil {
		return nil, err
	}
	return b.GetTx(), b.SetSignatures(signature)
}
