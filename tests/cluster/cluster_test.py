#!/usr/bin/env python3
"""usage: cluster_test.py --dropin directory --work directory

Runs scripts/cluster for some seconds: bad input, a load, a node that is killed and returns by a streamed snapshot, a kill of all nodes,
a pause, and the check of all acknowledged writes, of the nodes' digests and of histories. Nothing is downloaded. Ends with 77 if the
program is not built (scripts/cluster build) or a part is not installed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIPPED = 77


def cluster(directory, *arguments, expect=0):
    """Runs scripts/cluster; its output."""
    done = subprocess.run([sys.executable, str(ROOT / 'scripts/cluster'), '--dir', str(directory), *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)
    if done.returncode != expect:
        raise AssertionError(f'scripts/cluster {" ".join(arguments)} ends with {done.returncode}, not {expect}:\n{done.stdout}')
    return done.stdout


def request(url, method='GET', body=None):
    """Status and body of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body, method=method), timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def check(claim, text):
    if not claim:
        raise AssertionError(text)


def nodes_of(directory):
    return ['http://' + node['http'] for node in json.loads((directory / 'cluster.json').read_text())['nodes']]


def check_requests(directory):
    """Each node answers for each key, and refuses bad requests with a reason."""
    nodes = nodes_of(directory)
    key = '/v1/kv/a%2Fb%00%FF'  # any bytes
    value = bytes(range(256))
    check(request(nodes[0] + key, 'PUT', value)[0] == 200, 'a put is not acknowledged')
    for node in nodes:
        check(request(node + key) == (200, value), f'{node} does not have the value')
    check(request(nodes[1] + key, 'DELETE')[0] == 200, 'a deletion is not acknowledged')
    check(request(nodes[2] + key)[0] == 404, 'a deleted key is there')
    check(request(nodes[0] + '/v1/kv/empty', 'PUT', b'')[0] == 200, 'an empty value is not stored')
    check(request(nodes[1] + '/v1/kv/empty') == (200, b''), 'an empty value is not the same as none')
    for path, method, body, status in (
            ('/v1/kv/', 'GET', None, 400), ('/v1/kv/' + 'k' * 4097, 'GET', None, 400), ('/v1/kv/k', 'POST', b'', 405),
            ('/v1/kv/k', 'PUT', bytes((1 << 20) + 1), 413), ('/v1/kv/k?stale=maybe', 'GET', None, 400), ('/v1/other', 'GET', None, 404),
            ('/v1/digest?group=17', 'GET', None, 400), ('/v1/status', 'PUT', b'', 405)):
        answer = request(nodes[0] + path, method, body)
        check(answer[0] == status and 'error' in json.loads(answer[1]), f'{method} {path[:40]}: {answer}, not {status} with an error')


def check_refusals(directory):
    """Verbs name what is wrong."""
    for arguments, expected in ((('kill', '4'), 'is not a node'), (('kill',), 'takes a node'), (('frob',), 'is not a verb'),
                                (('load', '--value-bytes', '1'), '--value-bytes'), (('load', '--seconds', '-1'), '--seconds'),
                                (('up', '--no-build', '--engine', 'rocksdb'), 'cannot change')):
        output = cluster(directory, *arguments, expect=2)
        check(expected in output, f'{arguments}: {output}')


def check_bad_flag(directory, dropin):
    """A cluster that cannot start says why, and leaves nothing behind."""
    other = directory / 'other'
    (other / 'bin').mkdir(parents=True)
    shutil.copy(directory / 'bin/cluster', other / 'bin/cluster')
    output = cluster(other, 'up', '--no-build', '--library', dropin, '--groups', '0', expect=2)
    check('--groups is 0' in output and not (other / 'cluster.json').exists(), output)


def check_verify_fails(directory):
    """The checker finds a lost write: one that the ledger has and that was never made."""
    ledger = directory / 'ledger.jsonl'
    kept = ledger.read_text()
    ledger.write_text(kept + json.dumps({'key': 'never written', 'acked': 1, 'attempted': 1, 'bytes': 100}) + '\n')
    check('was acknowledged' in cluster(directory, 'verify', expect=1), 'verify does not find a lost write')
    ledger.write_text(kept)


def run(directory, data, dropin):
    flags = ['--snapshot-entries', '20', '--keep-entries', '5']
    cluster(directory, 'up', '--no-build', '--library', dropin, '--data', data, *flags)
    check_bad_flag(directory, dropin)
    check_requests(directory)
    check_refusals(directory)
    cluster(directory, 'kill', '3')
    # Of each group 20 entries and more: node 3 gets snapshots of groups whose log no longer reaches back. A busy machine needs longer.
    writes = 0
    for _ in range(5):
        writes += json.loads(cluster(directory, 'load', '--clients', '64', '--keys', '20', '--seconds', '3').splitlines()[-1])['writes']
        if writes >= 2000:
            break
    cluster(directory, 'start', '3')
    cluster(directory, 'up', '--no-build')
    cluster(directory, 'verify')
    status = json.loads(request(nodes_of(directory)[2] + '/v1/status')[1])
    check(status['snapshots_received'] > 0, f'node 3 has not received a snapshot: {status}')
    check_verify_fails(directory)
    output = cluster(directory, 'chaos', '--cycles', '1', '--seed', '7')
    cluster(directory, 'kill', 'all')
    cluster(directory, 'up', '--no-build')
    cluster(directory, 'status')
    cluster(directory, 'verify')
    print(f'{writes} writes with a dead node; {output.splitlines()[-1]}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--dropin', default=f'{ROOT}/build/release/dropin', help='where the drop-in libraries are')
    parser.add_argument('--work', default=f'{ROOT}/build/cluster', help='where scripts/cluster build has put the program')
    options = parser.parse_args()
    program = Path(options.work) / 'bin/cluster'
    if not program.exists():
        print(f'skipped: {program} is not there: run scripts/cluster build')
        return SKIPPED
    built = subprocess.run([sys.executable, str(ROOT / 'scripts/cluster'), '--dir', options.work, 'build', '--offline'], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if built.returncode != 0:
        print(('skipped: ' if built.returncode == SKIPPED else '') + built.stdout)
        return built.returncode
    memory = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix='braiddb-cluster-', dir=memory))
    try:
        (directory / 'bin').mkdir()
        shutil.copy(program, directory / 'bin/cluster')
        run(directory, str(directory / 'data'), os.path.abspath(options.dropin))
        return 0
    finally:
        if (directory / 'cluster.json').exists():
            cluster(directory, 'down', '--delete')
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main())
