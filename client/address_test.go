package client_test

import (
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/starling-network/starling/chain/account"
)

// Addresses are those of the SDK, and so is what is no address.
func TestAddressesAreThoseOfTheSDK(t *testing.T) {
	for _, b := range [][]byte{{0}, make([]byte, 20), {1, 2, 3, 255}, make([]byte, 32)} {
		if got, want := account.Address(b), sdk.AccAddress(b).String(); got != want {
			t.Errorf("%x: %s, want %s", b, got, want)
		}
	}
	for _, name := range []string{"market", "gov", ""} {
		if got, want := account.Module(name), authtypes.NewModuleAddress(name).String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	valid := account.Address(make([]byte, 20))
	other, err := sdk.Bech32ifyAddressBytes("cosmos", make([]byte, 20))
	if err != nil {
		t.Fatal(err)
	}
	long, err := sdk.Bech32ifyAddressBytes(account.Prefix, make([]byte, 256))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{valid, "", " ", " " + valid, valid[:len(valid)-1] + "q", "starling1", other, long,
		"STARLING1" + valid[9:], account.Prefix} {
		if _, err := sdk.AccAddressFromBech32(text); (account.Check(text) == nil) != (err == nil) {
			t.Errorf("%q: %v, and the SDK says %v", text, account.Check(text), err)
		}
	}
}
