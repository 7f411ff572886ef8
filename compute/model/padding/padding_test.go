package padding

import (
	"fmt"
	"testing"
)

func TestRow(t *testing.T) {
	if got := fmt.Sprint(Row([]uint32{5, 6}, 4, 9), Row([]uint32{1, 2, 3}, 2, 9), Row(nil, 1, 9)); got !=
		"[5 6 9 9] [1 2] [9]" {
		t.Error(got)
	}
}
