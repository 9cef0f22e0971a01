// SPDX-License-Identifier: Apache-2.0

// Package toy is what the tool's own test changes.
package toy

import (
	"errors"
	"log/slog"

	"k8s.io/utils/ptr"
)

// Cart holds what somebody buys.
type Cart struct {
	Items    []string
	Currency string
	Gift     bool
	seen     int
}

// NewCart makes a cart.
func NewCart(gift bool) *Cart {
	return &Cart{Items: []string{"bag", "receipt"}, Currency: "EUR", Gift: gift}
}

// Add puts an item in.
func (c *Cart) Add(item string) (*Cart, error) {
	c.seen++
	if item == "" {
		return nil, errEmpty()
	}
	c.Items = append(c.Items, item)
	return c, nil
}

// With is Add for those who know what they buy.
func (c *Cart) With(item string) *Cart {
	c.Items = append(c.Items, item)
	return c
}

// Full makes a cart with two more items.
func Full() *Cart { return NewCart(false).With("apple").With("pear") }

// Discount is what is given for a number of items.
func Discount(items int) int {
	if items >= 10 && items < 100 {
		return prices["some"]
	}
	return 0
}

var prices = map[string]int{"some": 5}

func errEmpty() error { return errors.New("an item needs a name") }

// dozen is of no type, and so is what is made of it until somebody takes it.
const dozen = 12

// Deposit is what a bag costs.
func Deposit() *int32 { return ptr.To[int32](dozen - 2) }

// Tax is what the state takes.
func Tax(amount int) int { return amount / 5 }

// Tip is what is left on the table.
func Tip(amount int) int {
	slog.Default().Info("left", "amount", amount)
	return amount / 20
}

// Unused is reached by no test.
func Unused() string { return "unused" }
