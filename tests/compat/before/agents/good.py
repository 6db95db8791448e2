from pytest_mlab import Action


def do(env, name, **args):
    return env.execute(Action(name, args))


class Agent:
    needs_model = False

    def run(self, env):

        for action in env.script("reference"):
            env.execute(action)
    