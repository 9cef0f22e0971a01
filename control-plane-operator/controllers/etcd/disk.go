// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/condition"
)

const (
	// fsyncFamily is etcd's histogram of how long it takes until what a member must not lose is on its disk, in seconds.
	fsyncFamily = "etcd_disk_wal_fsync_duration_seconds"
	// startFamily is when a member's process started. Its histogram began then.
	startFamily = "process_start_time_seconds"
	// diskWindow is how long fsyncs are watched for one finding, and enoughSyncs how many it takes at least.
	diskWindow  = 5 * time.Minute
	enoughSyncs = 100
	// tolerable is the longest 99th percentile of fsyncs that etcd's documentation calls fast enough. A disk that was slower is called fast
	// again below relieved, a bound of etcd's histogram, in as many windows as reliefs says: one at the edge does not change its name all the time.
	tolerable = 10 * time.Millisecond
	relieved  = 8 * time.Millisecond
	reliefs   = 3
	// restated is by what factor a slow disk's latency must change to be said anew.
	restated = 1.5
)

// fsyncs is what a member has counted since its process started.
type fsyncs struct {
	started float64
	total   uint64
	// upTo is how many took as long as a bound in seconds, or less.
	upTo map[float64]uint64
}

// disk is what is known of the disk under a member. The zero value knows nothing.
type disk struct {
	since  time.Time
	before *fsyncs
	// p99 is of the last window; zero before the first has passed.
	p99 time.Duration
	// said is the latency that is complained of; zero if the disk is fast.
	said time.Duration
	// fast counts the windows in a row in which a slow disk was fast.
	fast int
}

// readFsyncs returns nil for metrics of something else than etcd.
func readFsyncs(families map[string]*dto.MetricFamily) *fsyncs {
	if len(families[fsyncFamily].GetMetric()) == 0 {
		return nil
	}
	histogram := families[fsyncFamily].GetMetric()[0].GetHistogram()
	read := &fsyncs{total: histogram.GetSampleCount(), upTo: map[float64]uint64{}}
	for _, bucket := range histogram.GetBucket() {
		if !math.IsInf(bucket.GetUpperBound(), 1) {
			read.upTo[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
		}
	}
	if started := families[startFamily].GetMetric(); len(started) > 0 {
		read.started = started[0].GetGauge().GetValue()
	}
	return read
}

// due tells whether it is time to look at the disk again.
func (d *disk) due(now time.Time) bool { return d.before == nil || now.Sub(d.since) >= diskWindow }

// take ends a window, unless too little happened in it, or the member restarted.
func (d *disk) take(now time.Time, read *fsyncs) {
	if d.before == nil || d.before.started != read.started {
		d.since, d.before = now, read
		return
	}
	p99, enough := read.percentile(0.99, d.before)
	if !enough {
		return
	}
	d.since, d.before, d.p99 = now, read, p99
	d.evaluate()
}

func (d *disk) evaluate() {
	switch {
	case d.said == 0 && d.p99 >= tolerable:
		d.said, d.fast = legible(d.p99), 0
	case d.said == 0:
	case d.p99 < relieved:
		if d.fast++; d.fast >= reliefs {
			d.said = 0
		}
	default:
		d.fast = 0
		if ratio := float64(d.p99) / float64(d.said); d.p99 >= tolerable && (ratio > restated || ratio < 1/restated) {
			d.said = legible(d.p99)
		}
	}
}

// percentile is how long that share of the fsyncs took at most since before, as far as the buckets tell: between two bounds they are
// taken for evenly spread. It tells too whether there were enough of them.
func (f *fsyncs) percentile(share float64, before *fsyncs) (time.Duration, bool) {
	if f.total < before.total+enoughSyncs {
		return 0, false
	}
	rank := share * float64(f.total-before.total)
	lower, below := 0.0, 0.0
	for _, upper := range slices.Sorted(maps.Keys(f.upTo)) {
		count := float64(f.upTo[upper] - before.upTo[upper])
		if count >= rank && count > below {
			return seconds(lower + (upper-lower)*(rank-below)/(count-below)), true
		}
		lower, below = upper, count
	}
	return seconds(lower), true
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// legible rounds to what a person reads.
func legible(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// diskFast says which disks are too slow. It says nothing before all have been watched for a while, unless one is slow.
func diskFast(pods []string, disks map[string]*disk) (metav1.Condition, bool) {
	t := string(hyperv1.EtcdDiskFast)
	var slow []string
	known := true
	for _, pod := range pods {
		d := disks[pod]
		if d == nil || d.p99 == 0 {
			known = false
			continue
		}
		if d.said > 0 {
			slow = append(slow, fmt.Sprintf("%d ms on %s", d.said.Milliseconds(), pod))
		}
	}
	if len(slow) > 0 {
		return condition.False(t, hyperv1.EtcdDiskSlowReason, fmt.Sprintf("The disk is too slow for etcd: p99 of fsync is %s, wanted < %d ms",
			strings.Join(slow, ", "), tolerable.Milliseconds())), true
	}
	return condition.True(t, hyperv1.AsExpectedReason, ""), known
}
