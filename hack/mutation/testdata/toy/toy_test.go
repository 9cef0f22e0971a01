// SPDX-License-Identifier: Apache-2.0

package toy

import (
	"slices"
	"testing"
)

func TestAdd(t *testing.T) {
	c, err := NewCart(true).Add("apple")
	if err != nil || !slices.Equal(c.Items, []string{"bag", "receipt", "apple"}) || c.Currency != "EUR" {
		t.Errorf("got %v, %v", c, err)
	}
	if _, err := NewCart(true).Add(""); err == nil {
		t.Error("an item without a name was added")
	}
}

func TestFull(t *testing.T) {
	if c := Full(); !slices.Contains(c.Items, "apple") || c.Gift {
		t.Errorf("got %v", c)
	}
}

func TestDiscount(t *testing.T) {
	for items, want := range map[int]int{9: 0, 10: 5, 99: 5, 100: 0} {
		if got := Discount(items); got != want {
			t.Errorf("%d items: got %d, want %d", items, got, want)
		}
	}
}

func TestDeposit(t *testing.T) {
	if got := *Deposit(); got != 10 {
		t.Errorf("got %d", got)
	}
}
