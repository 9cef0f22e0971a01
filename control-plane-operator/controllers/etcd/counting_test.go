// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// counting records which member gets which request.
type counting struct {
	Members
	w *world
}

// patient returns a context with a long timeout for a step. If a busy machine exceeded the timeout, the test would not
// know whether the step was done.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), healing)
}

func (c *counting) did(what string, err error) error {
	if err == nil {
		c.w.done = append(c.w.done, what)
	}
	if c.w.dies {
		return errors.Join(err, errDied)
	}
	return err
}

func (c *counting) MemberRemove(ctx context.Context, id uint64) (*clientv3.MemberRemoveResponse, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	r, err := c.Members.MemberRemove(ctx, id)
	return r, c.did("remove", err)
}

func (c *counting) MemberAddAsLearner(ctx context.Context, urls []string) (*clientv3.MemberAddResponse, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	r, err := c.Members.MemberAddAsLearner(ctx, urls)
	return r, c.did("add", err)
}

func (c *counting) MemberPromote(ctx context.Context, id uint64) (*clientv3.MemberPromoteResponse, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	r, err := c.Members.MemberPromote(ctx, id)
	return r, c.did("promote", err)
}

func (c *counting) Defragment(ctx context.Context, url string) (*clientv3.DefragmentResponse, error) {
	r, err := c.Members.Defragment(ctx, url)
	for pod := range c.w.members {
		if c.w.clientURL(namespace, pod) == url {
			err = c.did("defragment "+pod, err)
		}
	}
	return r, err
}

func (c *counting) Compact(ctx context.Context, rev int64, opts ...clientv3.CompactOption) (*clientv3.CompactResponse, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	r, err := c.Members.Compact(ctx, rev, opts...)
	return r, c.did("compact", err)
}

func (c *counting) AlarmDisarm(ctx context.Context, m *clientv3.AlarmMember) (*clientv3.AlarmResponse, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	r, err := c.Members.AlarmDisarm(ctx, m)
	return r, c.did("disarm", err)
}
