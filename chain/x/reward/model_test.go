package reward

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/chain/x/market"
)

// A run of a job with the longest name can end: the token of its model's shares can be minted.
func TestTheLongestNameOfAJobHasAToken(t *testing.T) {
	if coins := tokens(strings.Repeat("j", market.MaxName), 1); !coins.IsValid() {
		t.Error(coins)
	}
}
